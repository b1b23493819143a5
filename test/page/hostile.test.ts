/** Texts that try to run on the page of a run, through every field that it shows. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startWorld, type World } from "../contract/world.ts";
import { openPage } from "./browser.ts";
import { hasChromium, startBrowser } from "./chromium.ts";

let world: World;
let browser: Browser;
beforeAll(async () => {
  if (!hasChromium) return;
  [world, browser] = await Promise.all([startWorld(), startBrowser()]);
});
afterAll(async () => {
  await browser?.close();
  await world?.stop();
});

/** What would run or load something; N is the number of the payload. */
const ATTACKS = [
  "<script>fetch('http://127.0.0.1:1/N')</script>",
  "<img src=http://127.0.0.1:1/N onerror=alert(N)>",
  "<svg onload=alert(N)>",
  "<iframe srcdoc='<script>alert(N)</script>'></iframe>",
  "<iframe src=javascript:alert(N)></iframe>",
  "<object data=http://127.0.0.1:1/N></object>",
  "<link rel=stylesheet href=http://127.0.0.1:1/N>",
  "<style>@import 'http://127.0.0.1:1/N'</style>",
  "<meta http-equiv=refresh content='0;url=http://127.0.0.1:1/N'>",
  "<base href=http://127.0.0.1:1/N>",
  "<form action=http://127.0.0.1:1/N><input autofocus onfocus=alert(N)></form>",
  "<a href=javascript:alert(N)>N</a>",
  "<details open ontoggle=alert(N)>",
  "<video><source onerror=alert(N)></video>",
  "<body onload=alert(N)>",
  "<math><mtext><table><mglyph><style><img src=x onerror=alert(N)>",
  "javascript:alert(N)",
  "data:text/html,<script>alert(N)</script>",
  "{{constructor.constructor('alert(N)')()}}",
  "${alert(N)}",
  "__proto__ constructor N",
  "</code></td></table><script>alert(N)</script>",
  "]]><script>alert(N)</script>",
  "\u202e<script>alert(N)</script>\u0007",
  "<portal src=http://127.0.0.1:1/N>",
];
/** From where each would break out. */
const CONTEXTS = ["", "\"'>", "</script>", "--></style>", "</textarea></title>"];
const MUTATIONS = [
  (text: string) => text,
  (text: string) => text.toUpperCase(),
  (text: string) => text.replaceAll(" ", "/"),
  (text: string) => text.replaceAll("<", "<\n"),
];

const PAYLOADS = MUTATIONS.flatMap((mutate) =>
  CONTEXTS.flatMap((context) => ATTACKS.map((attack) => context + mutate(attack))),
).map((payload, index) => payload.replaceAll("N", String(index)));

describe.runIf(hasChromium)("500 hostile texts", () => {
  it("run nothing and load nothing as names, models, errors, phases, prompts and answers of a run", async () => {
    expect(new Set(PAYLOADS).size).toBe(500);
    const parts = Array.from({ length: 5 }, (_, part) => PAYLOADS.slice(part * 100, (part + 1) * 100));
    for (const [part, payloads] of parts.entries()) {
      const text = payloads.join(" ");
      const run = await world.openRun({
        name: text.replaceAll(/\p{Cc}/gu, "").slice(0, 100),
        default_model: "up-1",
        budget: { usd: 5 },
        metadata: { text },
      });
      await run.send("/log", { json: payloads.map((output) => ({ event_type: "phase", output, data: { output } })) });
      // As the name of a model it is in the failures; the answer of the others is their prompt.
      const items = payloads.flatMap((payload, index) => [
        {
          id: `${index} ${payload}`.replaceAll(/\p{Cc}/gu, "").slice(0, 60),
          prompt: `{{status/400}} ${payload}`,
          model: `up/${payload.replaceAll(/\p{Cc}/gu, "")}`,
        },
        { prompt: payload },
      ]);
      await run.send("/batch", { json: { items } });
      const tasks = payloads.map((phase, index) => ({
        id: `t${index}`,
        prompt: phase,
        phase: phase.replaceAll(/\p{Cc}/gu, "").slice(0, 60),
      }));
      const graph = await run.send("/dag", { json: { tasks } });
      expect([part, graph.status, graph.status === 200 ? "" : graph.text]).toEqual([part, 200, ""]);
      const { page, faults } = await openPage(browser, `${world.gateway.url}/ui/runs/${run.id}#token=${run.token}`);
      await expect.poll(() => page.getByText("300 of 300", { exact: true }).count()).toBe(1);
      // Every kind of box, the task list, the legend, and the texts of calls.
      await page.getByRole("region", { name: "Graph" }).getByRole("button").first().click();
      await page.getByLabel("Colour", { exact: true }).selectOption("model");
      const timeline = page.getByRole("region", { name: "Timeline" });
      for (let presses = 0; presses < 3; presses++) await timeline.locator(".rows").press("ArrowDown");
      await expect.poll(() => timeline.getByRole("status").innerText()).toContain("Answer");
      const shown = await page.getByRole("region", { name: "Failures" }).innerText();
      expect(payloads.filter((payload) => !squeezed(shown).includes(squeezed(payload)))).toEqual([]);
      expect(faults).toEqual([]);
      // The page's own script and style, and no other.
      expect(await page.locator("head > script[src='/ui/app.js'], head > style").count()).toBe(2);
      expect(await page.locator("script, iframe, img, object, base, form[action], style").count()).toBe(2);
      await page.context().close();
    }
  });
});

/** White space is shown as a browser shows it. */
function squeezed(text: string): string {
  return text.replaceAll(/[\s\p{Cc}]+/gu, "");
}
