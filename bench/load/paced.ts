/** A load of clients that read paced streams, and note how long each event was on its way. */
import { request, Agent } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { LoadPlan } from "./load.ts";
import { PACED_EVENTS, writtenAtNs } from "./paced-events.ts";
import { percentile } from "../stats.ts";

export type PacedPlan = LoadPlan & {
  /** Time over which the clients begin, ms, so that their streams are not in step; absent = all begin at once. */
  beginsWithinMs?: number;
};

export type PacedResult = { events: number; p50Ms: number; p99Ms: number; mostMs: number };

/**
 * Runs the plan as `load` does: a closed loop of clients. Throws at the first stream that is not whole. The first event of
 * a stream is left out: it waits for what comes before a stream.
 */
export async function loadPaced(plan: PacedPlan): Promise<PacedResult> {
  const agent = new Agent({ keepAlive: true, maxSockets: plan.concurrency });
  const delaysMs: number[] = [];
  let sent = 0;
  const startedMs = performance.now();
  const { beginsWithinMs = 0, concurrency } = plan;
  const loop = async (client: number) => {
    await sleep((client / concurrency) * beginsWithinMs);
    while (sent < plan.requests && performance.now() - startedMs < plan.msMax) {
      const delays = await readOne(plan, agent, plan.body(sent++));
      if (delays.length !== PACED_EVENTS) throw new Error(`${plan.url}: ${delays.length} of ${PACED_EVENTS} events`);
      delaysMs.push(...delays.slice(1));
    }
  };
  try {
    await Promise.all(Array.from({ length: concurrency }, (_, client) => loop(client)));
  } finally {
    agent.destroy();
  }
  return {
    events: delaysMs.length,
    p50Ms: percentile(delaysMs, 0.5),
    p99Ms: percentile(delaysMs, 0.99),
    mostMs: percentile(delaysMs, 1),
  };
}

/** Reads one stream; returns the delay of each of its events, ms. */
async function readOne({ url, headers }: LoadPlan, agent: Agent, body: string): Promise<number[]> {
  const { promise, resolve, reject } = Promise.withResolvers<number[]>();
  const length = String(Buffer.byteLength(body));
  const sent = { ...headers, "content-type": "application/json", "content-length": length };
  const posted = request(url, { method: "POST", agent, headers: sent }, (response) => {
    const delays: number[] = [];
    // An event that arrives in two pieces has arrived with its last one.
    let left = "";
    response.setEncoding("utf8");
    response.on("data", (piece: string) => {
      const nowNs = process.hrtime.bigint();
      const text = left + piece;
      const end = text.lastIndexOf("\n\n") + 2;
      left = text.slice(end === 1 ? 0 : end);
      for (const ns of writtenAtNs(end === 1 ? "" : text.slice(0, end))) delays.push(Number(nowNs - ns) / 1e6);
    });
    response.once("end", () => {
      if (response.statusCode === 200) resolve(delays);
      else reject(new Error(`POST ${url} answered ${response.statusCode}`));
    });
    response.once("error", reject);
  });
  posted.once("error", reject);
  posted.end(body);
  return await promise;
}
