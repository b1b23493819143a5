/** workerd is killed under `npm start`: how soon the gateway answers again, and whether anything is lost. */
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { atMost, exact, plain, type Part } from "../parts/row.ts";
import { openRun, startUpstream, takeUpstreamStats } from "../servers/servers.ts";
import { median } from "../stats.ts";
import { startNpm, type Started } from "./started.ts";

const SLOTS = 1_000;
/** The width of the run, so the most calls that a kill can lose. */
const WIDTH = 512;
/** The batch takes at least SLOTS ÷ WIDTH of these, ms, and each kill hits it in the middle. */
const LATENCY_MS = 400;
const BACK_MS_MAX = 2_000;
const POLL_MS = 10;
/** Longest until the batch has ended, ms: a found lease's term and some. */
const END_MS_MAX = 90_000;

const opened = z.looseObject({ id: z.string() });
const ended = z.looseObject({ status: z.string(), results: z.array(z.unknown()), errors: z.array(z.unknown()) });
const budget = z.looseObject({ calls: z.looseObject({ reserved: z.number(), spent: z.number() }) });

/** One batch without a client per kill, in one gateway. */
export async function measureCrash(kills: number): Promise<Part> {
  await using upstream = await startUpstream({ latencyMs: LATENCY_MS });
  await using gateway = await startNpm(upstream);
  const backMs: number[] = [];
  const againMs: number[] = [];
  const faults: string[] = [];
  for (let kill = 1; kill <= kills; kill += 1) {
    const token = await openRun(gateway);
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    await takeUpstreamStats(upstream);
    const prompts = Array.from({ length: SLOTS }, (_, index) => `slot ${index}`);
    const reply = await fetch(`${gateway.url}/batch`, {
      method: "POST",
      headers: { ...headers, prefer: "respond-async" },
      body: JSON.stringify({ prompts, concurrency: WIDTH }),
    });
    const { id } = opened.parse(await reply.json());
    await sleep(LATENCY_MS * 1.5);
    killWorkerd(gateway);
    const killedMs = performance.now();
    backMs.push(await untilHealthy(gateway.url, killedMs));
    const group = await endOf(`${gateway.url}/groups/${id}?wait_ms=5000`, headers);
    againMs.push(performance.now() - killedMs);
    const left = group.results.length - group.errors.filter((error) => error === null).length;
    if (group.status !== "completed" || left !== 0) faults.push(`kill ${kill}: ${group.status}, ${left} slots failed`);
    const { requests } = await takeUpstreamStats(upstream);
    if (requests > SLOTS + WIDTH) faults.push(`kill ${kill}: ${requests} calls for ${SLOTS} slots of width ${WIDTH}`);
    const { calls } = budget.parse(await (await fetch(`${gateway.url}/budget`, { headers })).json());
    if (calls.reserved !== 0) faults.push(`kill ${kill}: ${calls.reserved} calls are reserved at the end`);
    if (calls.spent < requests) faults.push(`kill ${kill}: ${calls.spent} calls are charged, ${requests} were made`);
  }
  return {
    rows: [
      exact(
        `crash: batches of ${SLOTS} that lost something in ${kills} kills of workerd`,
        String(faults.length),
        "= 0",
        faults.length === 0,
      ),
      atMost("crash: the gateway answers again after, at most", Math.max(...backMs), BACK_MS_MAX, " ms"),
      plain("crash: the same, median", `${median(backMs).toFixed(0)} ms`),
      plain("crash: the batch has ended after, median", `${(median(againMs) / 1_000).toFixed(1)} s`),
    ],
    faults,
  };
}

export function killWorkerd(gateway: Started): void {
  const runtimes = gateway.processes().filter(({ name }) => name === "workerd");
  if (runtimes.length !== 1) throw new Error(`npm start runs ${runtimes.length} processes of workerd`);
  for (const { pid } of runtimes) process.kill(pid, "SIGKILL");
}

/** Time from the kill to the first answer, ms. */
export async function untilHealthy(url: string, killedMs: number): Promise<number> {
  for (;;) {
    const healthy = await fetch(`${url}/health`, { signal: AbortSignal.timeout(BACK_MS_MAX) })
      .then(async (reply) => (await reply.text(), reply.ok))
      .catch(() => false);
    const ms = performance.now() - killedMs;
    if (healthy || ms > END_MS_MAX) return ms;
    await sleep(POLL_MS);
  }
}

async function endOf(url: string, headers: Record<string, string>): Promise<z.infer<typeof ended>> {
  const untilMs = performance.now() + END_MS_MAX;
  for (;;) {
    const reply = await fetch(url, { headers });
    const text = await reply.text();
    if (reply.status !== 200) throw new Error(`${url} answered ${reply.status}: ${text}`);
    const group = ended.parse(JSON.parse(text));
    if (group.status !== "running" || performance.now() > untilMs) return group;
  }
}
