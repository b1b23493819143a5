/** A run that is wider than one executor may be: the Worker of its client holds a part of its calls, and lanes hold the others. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { EXECUTOR_CALLS_MAX, WORKER_CALLS_MAX } from "../../src/limits.ts";
import { groupOf, startWorld, type World } from "./world.ts";

/** So many that neither a Worker nor a few lanes have them. */
const WIDTH = WORKER_CALLS_MAX + 15 * EXECUTOR_CALLS_MAX;

let world: World;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(() => world.stop());

it(`a batch has ${WIDTH} calls in flight at once, and never one more`, { tags: ["slow"] }, async () => {
  const run = await world.openRun({ default_model: "up-1", max_parallel: WIDTH });
  const prompts = Array.from({ length: WIDTH + 100 }, (_, index) => `{{latch/wide}} ${index}`);
  const answer = run.send("/batch", { json: { prompts } });
  await expect.poll(() => world.upstream.counters.inFlight, { timeout: 120_000 }).toBe(WIDTH);
  world.upstream.open("wide");
  const group = groupOf(await answer);
  expect(group.effective_parallel).toBe(WIDTH);
  expect([world.upstream.counters.peakInFlight, group.metrics.peak_parallel]).toEqual([WIDTH, WIDTH]);
  expect(group.results).toEqual(prompts);
  expect(new Set(world.upstream.counters.sends.values())).toEqual(new Set([1]));
});
