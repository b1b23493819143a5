/**
 * A client that disconnects in the middle of its batch: what the Worker of its request has not begun is made by lanes, with
 * nobody asking. A small round of `npm run bench:hand-over`, which also says what is held against what.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { handOver } from "../../bench/hand-over/round.ts";
import type { RunPlan } from "../../bench/kill/plan.ts";
import { startKillWorld, type KillWorld } from "../../bench/kill/world.ts";
import { startSplice, type Splice } from "../../scripts/local/splice.ts";

const SLOTS = 200;
const WIDTH = 16;
const planAt = (leavesAt: number): RunPlan => ({
  name: `left${leavesAt * 10}`,
  slots: SLOTS,
  maxParallel: WIDTH,
  promptBytes: 60,
  latencyMsMax: 40,
  client: "leaves",
  leavesAt,
  onLost: "retry",
  budgetShare: 1,
  postsAfterMs: 0,
});
const PLANS = [planAt(0), planAt(0.4), planAt(0.8)];

let world: KillWorld;
let splice: Splice;
beforeAll(async () => {
  world = await startKillWorld(PLANS);
  const { hostname, port } = new URL(world.url);
  splice = await startSplice({ host: hostname, port: 0 }, () => ({ host: hostname, port: Number(port) }));
});
afterAll(async () => {
  await splice?.close();
  await world?.[Symbol.asyncDispose]();
});

describe("a batch whose client disconnects", () => {
  it.each(PLANS)(
    "continues without it: every slot ends once, and is sent once ($name)",
    { tags: ["slow"] },
    async (plan) => {
      const { round, leftAt } = await handOver(world, `http://127.0.0.1:${splice.port}`, plan);
      expect(leftAt).toBeLessThan(1);
      expect(round).toMatchObject({ completed: SLOTS, calls: SLOTS, estimated: 0, faults: [] });
    },
  );
});
