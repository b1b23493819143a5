/** A gateway that is killed while a condition is open: the answer of an early call is there after the restart. */
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { ASYNC } from "./following.ts";
import { startRestarting, type Restarting } from "./restarting.ts";
import { documentOf } from "./world.ts";

/** Longest until everything runs again, ms: a lease and some. */
const RECOVERY_MS_MAX = 90_000;

const graph = z.looseObject({
  id: z.string(),
  status: z.string(),
  tasks: z.record(z.string(), z.looseObject({ status: z.string(), output: z.string().nullable().optional() })),
  speculation: z.looseObject({ started: z.int(), used: z.int(), spent_usd: z.number(), wasted_usd: z.number() }),
});

describe("a gateway killed after an early call has answered", () => {
  let place: Restarting;
  beforeAll(async () => void (place = await startRestarting()));
  afterAll(() => place.stop());

  it(
    "takes its answer over once the condition holds, without a second request",
    { tags: ["slow"], timeout: 240_000 },
    async () => {
      const run = await place.openRun({ default_model: "up-1", budget: { usd: 1 } });
      const tasks = [
        { id: "rate", prompt: "{{latch/decides}} yes" },
        { id: "write", prompt: "early text", run_if: { task: "rate", contains: "yes" }, likely: true },
      ];
      const json = { tasks, max_tokens: 50, speculate: { max_usd: 0.01 } };
      const accepted = await run.send("/dag", { json, headers: ASYNC });
      const { id } = z.looseObject({ id: z.string() }).parse(accepted.json);
      const now = async () => graph.parse((await run.send(`/dag/${id}`)).json);
      await vi.waitUntil(async () => (await now()).speculation.spent_usd > 0, {
        interval: 20,
        timeout: RECOVERY_MS_MAX,
      });
      const before = (await now()).speculation;
      await place.restart();
      expect((await now()).speculation).toEqual(before);
      place.upstream.open("decides");
      const ended = async () => {
        const seen = graph.parse((await run.send(`/dag/${id}?wait_ms=20000`)).json);
        return seen.status === "running" ? null : seen;
      };
      const done = await vi.waitUntil(ended, { interval: 10, timeout: RECOVERY_MS_MAX });
      expect([done.status, done.tasks["write"]?.output]).toEqual(["completed", "early text"]);
      expect(done.speculation).toEqual({ ...before, used: 1 });
      expect(place.upstream.counters.sends.get("early text")).toBe(1);
      expect((await documentOf(run)).budget.usd?.reserved).toBe(0);
    },
  );
});
