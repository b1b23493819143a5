/** What a reader of `/metrics` takes for a broken promise. */
import { expect, it } from "vitest";
import { Scrapes } from "./scrapes.ts";
import type { Reply } from "./worker.ts";

/** A reader, its looks that wait for a reply, and what it has found broken. */
function reader() {
  const waiting: ((reply: Reply) => void)[] = [];
  const violations: string[] = [];
  const request = () => new Promise<Reply>((resolve) => waiting.push(resolve));
  const scrapes = new Scrapes({ request }, (what) => violations.push(what));
  /** Lets the look that began as the `at`-th of all that wait be shown so much. */
  const shows = (at: number, usd: string): void => {
    const text = `\nfanout_unread_runs 0\nfanout_cost_usd_total{upstream="up"} ${usd}\n`;
    for (const reply of waiting.splice(at, 1)) reply({ status: 200, headers: new Headers(), text });
  };
  return { scrapes, shows, violations };
}

it("a look that begins after another has ended must not be shown less", async () => {
  const { scrapes, shows, violations } = reader();
  for (const usd of ["0.000002", "0.000003", "0.000001"]) {
    const looked = scrapes.look();
    shows(0, usd);
    await looked;
  }
  expect(violations).toEqual(["/metrics shows 1000 after 3000 nano-USD"]);
});

it("a look may be shown less than one that began later and ended sooner, and no less than one that had ended before", async () => {
  const { scrapes, shows, violations } = reader();
  const first = scrapes.look();
  shows(0, "0.000002");
  await first;
  const [slow, quick] = [scrapes.look(), scrapes.look()];
  shows(1, "0.000005");
  await quick;
  shows(0, "0.000003");
  await slow;
  expect(violations).toEqual([]);
  const [slower, quicker] = [scrapes.look(), scrapes.look()];
  shows(1, "0.000006");
  await quicker;
  shows(0, "0.000004");
  await slower;
  expect(violations).toEqual(["/metrics shows 4000 after 5000 nano-USD"]);
});
