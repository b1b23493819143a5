/** What the gate costs where nothing is limited: this version and the release before it, in turns. */
import { readFileSync } from "node:fs";
import { presentVersion } from "../../test/support/gateway.ts";
import { steady } from "../../test/support/limited/latency.ts";
import { noLimiter } from "../../test/support/limited/other-limiters.ts";
import { commitOf, versionOf } from "../../test/support/wire/checkout.ts";
import { atLeast, plain, type Part } from "../parts/row.ts";
import { median } from "../stats.ts";
import { batch, prompts, query, startGateWorld, type GateWorld } from "./world.ts";

const SHARE_MIN = 0.97;
const SLOTS = 2_000;
const QUERIES = 2_000;
const AT_ONCE = 32;

export async function measureCost(rounds: number): Promise<Part> {
  const recorded = readFileSync(new URL("../../test/support/fixtures/wire.jsonl", import.meta.url), "utf8");
  const { commit }: { commit: string } = JSON.parse(recorded.slice(0, recorded.indexOf("\n")));
  const before = await versionOf(commitOf(commit), { isRecorded: false });
  const now = await presentVersion();
  const shares: Record<"batch" | "query", number[]> = { batch: [], query: [] };
  for (let round = 0; round < rounds; round += 1) {
    const perS = { before: await throughput(before), now: await throughput(now) };
    for (const way of ["batch", "query"] as const) shares[way].push(perS.now[way] / perS.before[way]);
  }
  const rows = (["batch", "query"] as const).flatMap((way) => [
    atLeast(`/${way}: throughput, times that of ${commit}, median`, median(shares[way]), SHARE_MIN),
    plain(`/${way}: each round`, shares[way].map((share) => share.toFixed(2)).join(" ")),
  ]);
  return { rows, faults: [] };
}

/** Calls per second, after a warm-up. */
async function throughput(
  version: Awaited<ReturnType<typeof presentVersion>>,
): Promise<{ batch: number; query: number }> {
  await using world = await startGateWorld({ limiter: noLimiter(), latency: steady(0), version });
  const { token } = await world.openRun({ window_ms: 0 });
  await batch(world, token, { prompts: prompts("warm", SLOTS / 4) });
  await queries(world, token, QUERIES / 4);
  const batchMs = await timed(() => batch(world, token, { prompts: prompts("b", SLOTS) }));
  const queryMs = await timed(() => queries(world, token, QUERIES));
  return { batch: (SLOTS / batchMs) * 1_000, query: (QUERIES / queryMs) * 1_000 };
}

async function queries(world: GateWorld, token: string, count: number): Promise<void> {
  let left = count;
  const worker = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      await query(world, token, `q ${left}`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now();
  await work();
  return performance.now() - startedMs;
}
