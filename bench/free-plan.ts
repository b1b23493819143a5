/**
 * `npm run bench:free-plan [-- --rounds=20 --aggregate=json]`: the CPU time of one request, in the Worker and in objects, for single calls and for
 * batches of several sizes. Cloudflare's free plan allows 10 ms in a request. The Worker and the objects run in isolates of their
 * own on plain workerd; the thread's CPU time is read from the kernel (Linux only) and divided by the isolates' profiles.
 */
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { z } from "zod";
import { freePort } from "./servers/process.ts";
import { connectInspectors, type Inspector } from "./servers/inspector.ts";
import { startUpstream } from "./servers/servers.ts";
import { presentVersion, startGateway, type Gateway, type Version } from "../test/support/gateway.ts";
import { tableOf } from "./table.ts";

const { values } = parseArgs({
  options: { rounds: { type: "string", default: "20" }, aggregate: { type: "string", default: "auto" } },
});
const ROUNDS = Number(values.rounds);
/** Calls before anything is measured, so that V8 has compiled what is used often. */
const WARM_UP_CALLS = 400;
const COLD_STARTS = 5;
const PROMPT = "Say in one sentence what a mizzen is, and where on a ship it stands. ".repeat(3);
const SIZES = [1, 2, 5, 10, 20, 40, 100];

type Way = { name: string; calls: number; send: (gateway: Gateway, token: string) => Promise<Response> };

const query: Way = {
  name: "/query",
  calls: 1,
  send: (gateway, token) => gateway.fetch("/query", { token, json: { prompt: PROMPT } }),
};
const batch = (calls: number): Way => ({
  name: `/batch of ${calls}`,
  calls,
  send: (gateway, token) => gateway.fetch("/batch", { token, json: { prompts: Array(calls).fill(PROMPT) } }),
});

/** CPU time of a process's main thread, which runs all isolates of workerd, ms. */
function threadMs(pid: number): number {
  const [ns = "0"] = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, "utf8").split(" ");
  return Number(ns) / 1e6;
}

/** CPU time per request of `rounds` requests, one after the other, ms. */
async function costOf(way: Way, gateway: Gateway, token: string, rounds: number): Promise<number> {
  const before = threadMs(gateway.pid);
  for (let round = 0; round < rounds; round++) {
    const reply = await way.send(gateway, token);
    if (reply.status !== 200) throw new Error(`${way.name}: ${reply.status} ${await reply.text()}`);
    await reply.text();
  }
  return (threadMs(gateway.pid) - before) / rounds;
}

const profileReply = z.object({
  profile: z.object({
    nodes: z.array(z.object({ id: z.number(), callFrame: z.object({ functionName: z.string() }) })),
    samples: z.array(z.number()),
  }),
});

/** Samples of an isolate in which it ran, while `work` is done. */
async function busySamples(isolates: readonly Inspector[], work: () => Promise<unknown>): Promise<number[]> {
  for (const isolate of isolates) await isolate.call("Profiler.start");
  await work();
  const counts: number[] = [];
  for (const isolate of isolates) {
    const { profile } = profileReply.parse(await isolate.call("Profiler.stop"));
    const idle = new Set(
      profile.nodes.filter(({ callFrame }) => callFrame.functionName === "(idle)").map(({ id }) => id),
    );
    counts.push(profile.samples.filter((id) => !idle.has(id)).length);
  }
  return counts;
}

async function start(
  version: Version,
  upstreamUrl: string,
): Promise<{ gateway: Gateway; token: string; inspectorUrl: string }> {
  const port = await freePort();
  const up = {
    kind: "openai",
    base_url: `${upstreamUrl}/v1`,
    aggregate: values.aggregate,
    prices: { "*": { input: 0.15, output: 0.6 } },
  };
  const gateway = await startGateway({
    script: version,
    objects: version,
    vars: { UPSTREAMS: { up }, DEFAULT_MODEL: "up/small", WAITING_FETCHES_MAX: "6" },
    workerdArgs: [`--inspector-addr=127.0.0.1:${port}`],
  });
  const { token } = await gateway.openRun({ budget: { usd: 1_000 } });
  return { gateway, token, inspectorUrl: `http://127.0.0.1:${port}` };
}

await using upstream = await startUpstream();
const version = await presentVersion();
const cold: number[] = [];
for (let at = 0; at < COLD_STARTS; at++) {
  const { gateway, token } = await start(version, upstream.url);
  cold.push(await costOf(query, gateway, token, 1));
  await gateway.stop();
}
const { gateway, token, inspectorUrl } = await start(version, upstream.url);
for (let call = 0; call < WARM_UP_CALLS; call++) await costOf(query, gateway, token, 1);
const isolates = await connectInspectors(inspectorUrl);
for (const { inspector } of isolates) await inspector.call("Profiler.enable");
const rows: Record<string, string>[] = [];
for (const way of [query, ...SIZES.map(batch)]) {
  await costOf(way, gateway, token, 5);
  const totalMs = await costOf(way, gateway, token, ROUNDS);
  const inspectors = isolates.map(({ inspector }) => inspector);
  const samples = await busySamples(inspectors, () => costOf(way, gateway, token, ROUNDS));
  const all = samples.reduce((sum, count) => sum + count, 0);
  const workers = samples.filter((_, index) => !isolates[index]?.id.includes("objects"));
  const workerMs = (totalMs * workers.reduce((sum, count) => sum + count, 0)) / all;
  rows.push({
    "total, ms": totalMs.toFixed(1),
    "Worker, ms": workerMs.toFixed(1),
    "objects, ms": (totalMs - workerMs).toFixed(1),
    "per call, ms": (totalMs / way.calls).toFixed(2),
    request: way.name,
  });
}
for (const { inspector } of isolates) inspector[Symbol.dispose]();
await gateway.stop();
const sorted = cold.toSorted((a, b) => a - b);
console.log(tableOf(rows));
console.log(`first /query after a start: ${sorted.map((ms) => ms.toFixed(0)).join(", ")} ms in all`);
