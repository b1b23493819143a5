/** Restarts: the gateway is killed (SIGKILL) ten times while a batch is on its way; its result is to be the same. */
import { setTimeout as sleep } from "node:timers/promises";
import { audit } from "./audit.ts";
import { create, endOf, upload, writeInput } from "./batch.ts";
import { exact, plain, type Part } from "../parts/row.ts";
import { startWorld, statsOf, type World } from "./world.ts";

export type RestartsPlan = { lines: number; kills: number; maxParallel: number };

const LATENCY_MS = 50;
const LINE_BYTES = 400;
/**
 * Longest wait for the lines that a kill waits for, ms: calls in flight at a kill hold their permits until their leases
 * end, a minute later at most, and a batch that had its whole width in flight stands still so long.
 */
const STALL_MS_MAX = 75_000;
const LOOK_MS = 5;
const BATCH_MS_MAX = 900_000;

/** Kills the gateway as soon as `lines` different lines have come; how many calls were unanswered then. */
async function killAt(world: World, lines: number): Promise<number> {
  const startedMs = performance.now();
  for (;;) {
    const seen = await statsOf(world.provider);
    if (seen.lines >= lines || performance.now() - startedMs > STALL_MS_MAX) {
      await world.restart();
      return seen.inFlight;
    }
    await sleep(LOOK_MS);
  }
}

/** Kills at equal shares of the lines, then lets the batch end. */
export async function measureRestarts(plan: RestartsPlan, report: (text: string) => void): Promise<Part> {
  const { lines, kills, maxParallel } = plan;
  await using world = await startWorld({ latencyMs: LATENCY_MS });
  await using input = await writeInput(lines, LINE_BYTES);
  const run = await world.openRun(maxParallel);
  const fileId = await upload(run, input);
  const startedMs = performance.now();
  const created = await create(run, fileId);
  const inFlight: number[] = [];
  for (let kill = 1; kill <= kills; kill++) {
    const unanswered = await killAt(world, Math.round((lines * kill) / (kills + 1)));
    inFlight.push(unanswered);
    const { lines: seen, repeated } = await statsOf(world.provider);
    const seconds = ((performance.now() - startedMs) / 1_000).toFixed(1);
    report(
      `restarts: kill ${kill} after ${seconds} s, ${seen} lines seen, ${unanswered} in flight, ${repeated} repeated`,
    );
  }
  const batch = await endOf(run, created, BATCH_MS_MAX);
  const wallMs = performance.now() - startedMs;
  const { output, error, faults } = await audit(run, batch, lines);
  const { requests, repeated, abandoned } = await statsOf(world.provider);
  report(`restarts: ${lines} lines, ${requests} calls, ${(wallMs / 1_000).toFixed(1)} s`);
  const most = lines + kills * maxParallel;
  const rows = [
    exact(`restarts: lines in the output file after ${kills} kills`, String(output), `= ${lines}`, output === lines),
    exact("restarts: lines in the error file", String(error), "= 0", error === 0),
    exact("restarts: faults in the files", String(faults.length), "= 0", faults.length === 0),
    exact(
      "restarts: upstream calls",
      String(requests),
      `<= ${most}, the lines and per kill the run's width of ${maxParallel}`,
      requests <= most,
    ),
    plain(
      "restarts: repeated calls; unanswered at the kills, by the upstream",
      `${repeated}, ${inFlight.reduce((sum, at) => sum + at, 0)}`,
    ),
    plain("restarts: answers to closed connections", String(abandoned)),
    plain("restarts: from create to completed", `${(wallMs / 1_000).toFixed(1)} s`),
  ];
  return { rows, faults };
}
