/** A batch most of whose prompts are in R2, when the whole gateway is killed. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { startBatchPlace, type BatchPlace } from "./batch-place.ts";
import { groupOf } from "./world.ts";

let place: BatchPlace;
beforeAll(async () => {
  place = await startBatchPlace();
});
afterAll(() => place.stop());

const WIDTH = 4;

it(
  "ends each slot once, in order, after the gateway was killed while prompts were read",
  { tags: ["slow"] },
  async () => {
    const run = await place.openRun({ max_parallel: WIDTH });
    // 6 MB, of which 4 are rows; one of the others waits at the upstream when the gateway dies.
    const prompts = Array.from({ length: 60 }, (_, index) =>
      `${index} `.padEnd(100_000, "x").concat(index === 46 ? "{{latch/killed}}" : ""),
    );
    const accepted = await run.send("/batch", {
      json: { prompts, model: "up-1" },
      headers: { prefer: "respond-async", "idempotency-key": "killed" },
    });
    expect(accepted.status).toBe(202);
    const at = accepted.headers.get("location") ?? "";
    await expect.poll(() => place.upstream.counters.requests).toBeGreaterThan(46);
    await place.restart();
    place.upstream.open("killed");
    await expect
      .poll(async () => (await run.send(at)).json, { timeout: 60_000 })
      .toMatchObject({ status: "completed" });
    expect(groupOf(await run.send(at)).results).toEqual(prompts);
    expect(place.upstream.counters.requests).toBeLessThanOrEqual(prompts.length + WIDTH);
  },
);
