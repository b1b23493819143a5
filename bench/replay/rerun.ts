/** What a program pays that runs once more, and how long it takes: as one batch, and as concurrent single calls. */
import { startGateway, type Gateway } from "../../test/support/gateway.ts";
import { startUpstream } from "../../test/support/upstream.ts";
import { atMost, exact, type Part } from "../parts/row.ts";
import { shuffled } from "./shuffled.ts";

const CONCURRENCY = 64;
/** Per 1,000 calls. */
const RERUN_MS_MAX = 1_000;

export async function measureRerun(calls: number): Promise<Part> {
  const upstream = await startUpstream(() => ({ delayMs: 5 }));
  const prices = { "*": { input: 1, output: 1 } };
  const up = { kind: "openai", base_url: upstream.baseUrl, models: ["*"], prices };
  const gateway = await startGateway({ vars: { UPSTREAMS: { up }, DEFAULT_MODEL: "up/m" } });
  const prompts = Array.from({ length: calls }, (_, at) => `prompt ${at}`);
  try {
    const { token } = await gateway.openRun({ replay: "run", max_parallel: CONCURRENCY, budget: { usd: 100 } });
    const ways = { "one /batch": batch, "concurrent /query": queries, "concurrent /query with keys": keyed };
    await batch(gateway, token, prompts, "first");
    const rows: Part["rows"] = [];
    for (const [name, play] of Object.entries(ways)) {
      const before = upstream.counters.requests;
      const startedMs = performance.now();
      await play(gateway, token, shuffled(prompts, 1), `again: ${name}`.replaceAll(" ", "-"));
      const ms = ((performance.now() - startedMs) * 1_000) / calls;
      const paid = upstream.counters.requests - before;
      rows.push(
        exact(`calls paid again, of ${calls} as ${name}`, `${paid}`, "0", paid === 0),
        atMost(`1,000 calls again as ${name}`, ms, RERUN_MS_MAX, " ms"),
      );
    }
    const before = upstream.counters.requests;
    await batch(gateway, token, [...shuffled(prompts, 2).slice(1), "changed"], "changed");
    const paid = upstream.counters.requests - before;
    rows.push(exact("calls paid after one prompt was changed", `${paid}`, "1", paid === 1));
    return { rows, faults: [] };
  } finally {
    await gateway.stop();
    await upstream.stop();
  }
}

type Play = (gateway: Gateway, token: string, prompts: readonly string[], epoch: string) => Promise<void>;

const batch: Play = async (gateway, token, prompts, epoch) => {
  const answer = await gateway.fetch("/batch", { token, json: { prompts }, headers: { "x-fanout-epoch": epoch } });
  const text = await answer.text();
  if (!text.includes('"status":"completed"')) throw new Error(`the batch failed: ${text.slice(0, 300)}`);
};

const queries: Play = (gateway, token, prompts, epoch) => each(gateway, token, prompts, epoch, false);
const keyed: Play = (gateway, token, prompts, epoch) => each(gateway, token, prompts, epoch, true);

async function each(
  gateway: Gateway,
  token: string,
  prompts: readonly string[],
  epoch: string,
  hasKeys: boolean,
): Promise<void> {
  const left = [...prompts];
  const worker = async (): Promise<void> => {
    for (let prompt = left.pop(); prompt !== undefined; prompt = left.pop()) {
      const key = hasKeys ? { "idempotency-key": `${epoch}-${left.length}` } : {};
      const headers = { "x-fanout-epoch": epoch, ...key };
      const answer = await gateway.fetch("/query", { token, json: { prompt }, headers });
      if (answer.status !== 200) throw new Error(`/query answered ${answer.status}: ${await answer.text()}`);
      await answer.arrayBuffer();
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, worker));
}
