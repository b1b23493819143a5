/** No request of a run token costs more than a second of processor time per megabyte: each heavy request is sent alone. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { cpuMsOf } from "../../bench/servers/process.ts";
import { startGateway, type Gateway } from "../support/gateway.ts";
import { heavyRequests } from "./heavy.ts";

/** Ten times what the slowest of them takes: other work of the machine makes processor time longer, too. */
const CPU_MS_PER_MB_MAX = 1_000;
const BYTES = 2_000_000;

let gateway: Gateway;
beforeAll(async () => {
  const up = {
    kind: "openai",
    base_url: "http://127.0.0.1:1/v1",
    models: ["m"],
    prices: { "*": { input: 1, output: 2 } },
  };
  gateway = await startGateway({ vars: { UPSTREAMS: { up }, DEFAULT_MODEL: "up/m" } });
});
afterAll(() => gateway.kill());

/** The processor time of a request. */
async function costOf(
  token: string,
  { path, body }: { path: string; body: string },
): Promise<{ cpuMsPerMb: number; status: number }> {
  const before = cpuMsOf(gateway.pid);
  const headers = { "content-type": "application/json" };
  const answer = await gateway.fetch(path, { token, method: "POST", headers, body });
  await answer.arrayBuffer();
  return { cpuMsPerMb: Math.round((cpuMsOf(gateway.pid) - before) / (body.length / 1e6)), status: answer.status };
}

it("answers every shape of body in every place within its bytes' share of processor time", async () => {
  const { token } = await gateway.openRun({ budget: { usd: 0 } });
  const costs: { what: string; cpuMsPerMb: number; status: number }[] = [];
  for (const request of heavyRequests(BYTES)) {
    let cost = await costOf(token, request);
    // A collection of the process's garbage may fall into one request, but not into each that is equal to it.
    for (let more = 0; more < 2 && cost.cpuMsPerMb > CPU_MS_PER_MB_MAX; more++) cost = await costOf(token, request);
    costs.push({ what: request.what, ...cost });
  }
  if (process.env["HEAVY_LISTED"] !== undefined) {
    console.table(costs.toSorted((a, b) => b.cpuMsPerMb - a.cpuMsPerMb).slice(0, 20));
  }
  expect(costs.length).toBeGreaterThan(100);
  expect(costs.filter(({ status }) => status >= 500)).toEqual([]);
  expect(costs.filter(({ cpuMsPerMb }) => cpuMsPerMb > CPU_MS_PER_MB_MAX)).toEqual([]);
}, 300_000);
