/**
 * `npm run bench:bindings [-- --rounds=7 --calls=1000]`: processor time of calls that another Worker makes through `FanoutRun`, against the
 * same calls over HTTP, 16 at a time, in turn at one workerd. Exit status 1 above RATIO_MAX: a binding should cost no more than HTTP.
 */
import { Log, LogLevel, Miniflare, convertV4MiniflareOptions } from "miniflare";
import { parseArgs } from "node:util";
import { z } from "zod";
import { localPlan } from "../scripts/local/plan.ts";
import { writeResult } from "./results.ts";
import { cpuMsOf, freePort, miniflarePid } from "./servers/process.ts";
import { gatewayBundle } from "./servers/servers.ts";
import { median } from "./stats.ts";

const { values } = parseArgs({ options: { rounds: { type: "string" }, calls: { type: "string" } } });
const rounds = Number(values.rounds ?? 7);
const calls = Number(values.calls ?? 1_000);
const RATIO_MAX = 1.1;
const ADMIN_KEY = "the-admin-key-of-the-bench-of-bindings";
const WAYS = ["binding", "http"] as const;

/** The Worker that calls: its body says how, in which run, and how often. */
const CALLER = `export default {
  async fetch(request, env) {
    const { way, token, calls, url } = await request.json();
    const run = way === "binding" ? await env.FANOUT.bind(token) : null;
    const headers = { authorization: "Bearer " + token, "content-type": "application/json" };
    const overHttp = async (call) => await (await fetch(url + "/query", { method: "POST", headers, body: JSON.stringify(call) })).json();
    let made = 0;
    const loop = async () => {
      while (made < calls) {
        const call = { prompt: "question " + made++ };
        const { text } = run === null ? await overHttp(call) : await run.query(call);
        if (text !== call.prompt) throw new Error("an answer is wrong: " + text);
      }
    };
    await Promise.all(Array.from({ length: 16 }, loop));
    return new Response("made");
  },
};`;

const opened = z.object({ token: z.string() });

function gatewayWorker(code: string, port: number) {
  const { name, compatibilityDate, compatibilityFlags, objects, buckets, vars } = localPlan({});
  return {
    name,
    modules: [{ type: "ESModule" as const, path: "gateway.mjs", contents: code }],
    compatibilityDate,
    compatibilityFlags: [...compatibilityFlags],
    durableObjects: Object.fromEntries(
      Object.entries(objects).map(([binding, className]) => [binding, { className, useSQLite: true }]),
    ),
    r2Buckets: buckets,
    bindings: { ...vars, ADMIN_KEY, SERVICE_BINDINGS: "1" },
    unsafeDirectSockets: [{ host: "127.0.0.1", port }],
  };
}

const port = await freePort();
const gateway = gatewayWorker((await gatewayBundle()).code, port);
const caller = {
  name: "caller",
  modules: [{ type: "ESModule" as const, path: "caller.mjs", contents: CALLER }],
  compatibilityDate: gateway.compatibilityDate,
  serviceBindings: { FANOUT: { name: gateway.name, entrypoint: "FanoutOperator" } },
};
const miniflare = new Miniflare(
  convertV4MiniflareOptions({
    host: "127.0.0.1",
    telemetry: { enabled: false },
    log: new Log(LogLevel.ERROR),
    logRequests: false,
    workers: [caller, gateway],
  }),
);
const callerUrl = await miniflare.ready;
const pid = miniflarePid();
const url = `http://127.0.0.1:${port}`;

/** The processor time of one round, ms. */
async function costOf(way: (typeof WAYS)[number]): Promise<number> {
  const headers = { authorization: `Bearer ${ADMIN_KEY}`, "content-type": "application/json" };
  const run = await fetch(`${url}/runs`, { method: "POST", headers, body: JSON.stringify({ budget: { usd: 5 } }) });
  const { token } = opened.parse(await run.json());
  const beforeMs = cpuMsOf(pid);
  const answer = await fetch(callerUrl, { method: "POST", body: JSON.stringify({ way, token, calls, url }) });
  if ((await answer.text()) !== "made") throw new Error(`the calls over ${way} failed with ${answer.status}`);
  return cpuMsOf(pid) - beforeMs;
}

const costs = { binding: [] as number[], http: [] as number[] };
// The first round of each loads code, and does not count.
for (const way of WAYS) await costOf(way);
for (let round = 0; round < rounds; round++) {
  for (const way of round % 2 === 0 ? WAYS : WAYS.toReversed()) costs[way].push(await costOf(way));
}
await miniflare.dispose();

const ratio = median(costs.binding) / median(costs.http);
for (const way of WAYS)
  console.log(`${way}: ${median(costs[way])} ms of processor time for ${calls} calls, median of ${rounds}`);
console.log(`binding ÷ HTTP: ${ratio.toFixed(2)}, <= ${RATIO_MAX}`);
console.log(`raw rounds: ${writeResult("bindings.json", JSON.stringify(costs))}`);
process.exitCode = ratio <= RATIO_MAX ? 0 : 1;
