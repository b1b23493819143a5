/** A batch on a provider of which a few calls take twenty times as long, with hedges and without; and one that is slow as a whole. */
import { z } from "zod";
import { stragglers, steady, type Latency } from "../../test/support/limited/latency.ts";
import { noLimiter } from "../../test/support/limited/other-limiters.ts";
import { atLeast, atMost, exact, type Part } from "../parts/row.ts";
import { prompts, startGateWorld, type GateWorld } from "./world.ts";

const SLOTS = 1_000;
const WIDTH = 64;
const CALL_MS = 200;
const TIMES = 20;
const SHARE = 0.02;
const EXTRA = 0.05;

/** The provider repeats it up to the cap: more than sixteen tokens. */
const QUESTION = "Say in one sentence of at most twenty words what matters most about the item with the number";

const answered = z.looseObject({
  usage: z.looseObject({ cost: z.number() }),
  metrics: z.looseObject({ latency_ms: z.looseObject({ p99: z.number() }) }),
});
type Measured = { p99Ms: number; costUsd: number; hedges: number; sent: number };

export async function measureHedge(): Promise<Part> {
  const late = stragglers(CALL_MS, { share: SHARE, times: TIMES });
  const plain = await measure(late, false);
  const hedged = await measure(late, { after: "p95", max_extra: EXTRA });
  const slow = await measure(steady(CALL_MS * TIMES), { after: "p95", max_extra: EXTRA });
  const slowSince = await measure(slowFrom(400), { after: "p95", max_extra: EXTRA });
  // What the budget is charged: the attempt that was given up counts as its whole reservation.
  const extra = hedged.costUsd / plain.costUsd - 1;
  const rows = [
    atLeast("99th percentile without hedges / with", plain.p99Ms / hedged.p99Ms, 5),
    atMost("charged beyond the batch without hedges, %", extra * 100, EXTRA * 100),
    atMost("sent beyond the slots, %", (hedged.sent / SLOTS - 1) * 100, EXTRA * 100),
    exact("hedges where all calls are slow", `${slow.hedges}`, "= 0", slow.hedges === 0),
    exact("hedges where all become slow", `${slowSince.hedges}`, "= 0", slowSince.hedges === 0),
    exact("hedges without the field", `${plain.hedges}`, "= 0", plain.hedges === 0),
  ];
  return { rows, faults: [] };
}

/** All calls from that number on are slow. */
function slowFrom(first: number): Latency {
  return ({ number }) => (number < first ? CALL_MS : CALL_MS * TIMES);
}

async function measure(latency: Latency, hedge: object | false): Promise<Measured> {
  // Answers end at their cap, so that a reservation is about twice what a call costs, as with caps that fit their answers.
  const upstream = { prompt_tokens_per_call: 0 };
  await using world = await startGateWorld({ limiter: noLimiter(), latency, upstream });
  const { id, token } = await world.openRun({ max_parallel: WIDTH });
  const json = { prompts: prompts(QUESTION, SLOTS), max_tokens: 16, hedge };
  const answer = await world.gateway.fetch("/batch", { token, json });
  const { usage, metrics } = answered.parse(await answer.json());
  const hedges = await hedgesIn(world, { id, token });
  return { p99Ms: metrics.latency_ms.p99, costUsd: usage.cost, hedges, sent: SLOTS + hedges };
}

async function hedgesIn({ gateway }: GateWorld, { id, token }: { id: string; token: string }): Promise<number> {
  const log = await (await gateway.fetch(`/runs/${id}/log`, { token })).text();
  return log.split("\n").filter((line) => line.includes('"attempt_started"') && line.includes('"hedge":true')).length;
}
