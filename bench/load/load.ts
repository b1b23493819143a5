/** The load generator: a closed loop of `concurrency` connections, each sending its next request when the last is answered. */
import { Connection } from "./connection.ts";
import { percentile } from "../stats.ts";

export type LoadPlan = {
  /** Where to POST. */
  url: string;
  headers: Record<string, string>;
  /** Headers of request `index` beside those of all; absent = none. */
  ownHeaders?: (index: number) => Record<string, string>;
  /** The body of request `index`. */
  body: (index: number) => string;
  concurrency: number;
  /** The status of every reply; absent = 200. */
  status?: number;
  /** Requests in all: the load ends when they are answered, or `msMax` after its start. */
  requests: number;
  msMax: number;
};

export type LoadResult = { requests: number; rps: number; p50Ms: number; p95Ms: number; p99Ms: number; p999Ms: number };

/** Runs the plan. Throws at the first reply with another status: a measurement of failures means nothing. */
export async function load(plan: LoadPlan): Promise<LoadResult> {
  const url = new URL(plan.url);
  const head = [
    `POST ${url.pathname} HTTP/1.1`,
    `host: ${url.host}`,
    "content-type: application/json",
    ...linesOf(plan.headers),
    "",
  ].join("\r\n");
  const headOf = (index: number): string =>
    [...linesOf(plan.ownHeaders?.(index) ?? {}), "content-length: "].join("\r\n");
  const latenciesMs: number[] = [];
  let sent = 0;
  const connections = Array.from({ length: plan.concurrency }, () => new Connection(url));
  const startedMs = performance.now();
  const loop = async (connection: Connection) => {
    while (sent < plan.requests && performance.now() - startedMs < plan.msMax) {
      const index = sent++;
      const body = plan.body(index);
      const sentMs = performance.now();
      const status = await connection.send(`${head}${headOf(index)}${Buffer.byteLength(body)}\r\n\r\n${body}`);
      if (status !== (plan.status ?? 200)) throw new Error(`POST ${plan.url} answered ${status}`);
      latenciesMs.push(performance.now() - sentMs);
    }
  };
  try {
    await Promise.all(connections.map(loop));
  } finally {
    for (const connection of connections) connection.close();
  }
  const wallMs = performance.now() - startedMs;
  return {
    requests: latenciesMs.length,
    rps: (latenciesMs.length / wallMs) * 1_000,
    p50Ms: percentile(latenciesMs, 0.5),
    p95Ms: percentile(latenciesMs, 0.95),
    p99Ms: percentile(latenciesMs, 0.99),
    p999Ms: percentile(latenciesMs, 0.999),
  };
}

function linesOf(headers: Record<string, string>): string[] {
  return Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
}
