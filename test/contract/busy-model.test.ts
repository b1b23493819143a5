/** One model of a key is overloaded: its calls are narrowed, the key stays open, and the other model's calls go on as before. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { z } from "zod";
import { upstreamList } from "../../src/contract/operator/upstreams.ts";
import { startWorld, type World } from "./world.ts";

let world: World;
/** The most calls at the overloaded model that were at the provider at once, of those that came when the gate had known it for long. */
let mostLate = 0;
let bad = 0;
let badInFlight = 0;

const GOOD_MS = 20;
const BAD_MS = 50;
/** Calls of each model, and the attempts at the overloaded one after which its width is small. */
const CALLS = 120;
const BAD_KNOWN = 180;

beforeAll(async () => {
  world = await startWorld(({ model }) => {
    if (model !== "up-bad") return { delayMs: GOOD_MS };
    bad += 1;
    badInFlight += 1;
    setTimeout(() => (badInFlight -= 1), BAD_MS);
    if (bad > BAD_KNOWN) mostLate = Math.max(mostLate, badInFlight);
    return { delayMs: BAD_MS, status: 503 };
  });
});
afterAll(() => world.stop());

async function keyOf(name: string) {
  const { data } = upstreamList().parse((await world.sendAsOperator("/upstreams")).json);
  const key = data.find((each) => each.name === name);
  if (key === undefined) throw new Error(`no upstream ${name}`);
  return key;
}

const reply = z.object({ counts: z.object({ completed: z.int(), failed: z.int() }) });

it(
  "keeps its key open, answers all calls of the other, and sends few of its own at once",
  { tags: ["slow"] },
  async () => {
    const run = await world.openRun({ default_model: "up/up-good", budget: { usd: 100 } });
    const warm = async () => {
      await run.send("/batch", {
        method: "POST",
        json: { prompts: Array.from({ length: 40 }, (_, at) => `warm ${at}`) },
      });
      return (await keyOf("up")).latency.map(({ model }) => model);
    };
    // The gate knows that the other model is answered.
    await expect.poll(warm, { timeout: 30_000, interval: 200 }).toContain("up-good");
    const items = Array.from({ length: 2 * CALLS }, (_, at) => ({
      prompt: `p ${at}`,
      model: at % 2 === 0 ? "up/up-bad" : "up/up-good",
    }));
    const answer = await run.send("/batch", { method: "POST", json: { items, concurrency: 2 * CALLS } });
    expect(reply.parse(answer.json).counts).toEqual(expect.objectContaining({ completed: CALLS, failed: CALLS }));
    expect(await keyOf("up")).toMatchObject({ class: "open", reason: null, width: null });
    // All of them would be there at once without a width of their own.
    expect(mostLate).toBeGreaterThan(0);
    expect(mostLate).toBeLessThan(CALLS / 2);
  },
);
