/**
 * `node bench/profile.ts query|chat|replay|keyed|batch|dag|native|read|js [--paced] [--at=48] [--seconds=5] [--interval-us=200] [--top=30] [--by=self|total] [--new-runs] [--strict]`:
 * where the gateway's isolate spends its time under load. `--at` is the concurrency of `query`, of `chat` (`/v1`), of
 * its calls again (`replay`, and `keyed` with Idempotency-Keys), and of the streams (`native`, `read`, `js`; with `--paced`, an event every 5 ms),
 * the width of `batch`; `dag` is a graph of 10,000 tasks with an output in each prompt; with `--new-runs` every batch opens its own run, with `--strict` no credit is leased. Prints files, functions and lines by self time
 * (or by time with callees), and leaves the
 * `.cpuprofile` in bench/results for the browser's developer tools.
 */
import { parseArgs } from "node:util";
import { sendBatch } from "./load/fan-outs.ts";
import { cpuProfile, foldProfile } from "./cpu-profile.ts";
import type { Cost } from "./cpu-profile.ts";
import { connectInspector } from "./servers/inspector.ts";
import { bodyOf, sendDag } from "./graph/size.ts";
import { load } from "./load/load.ts";
import { openRecordedRun, replay } from "./load/replays.ts";
import { loadPaced } from "./load/paced.ts";
import { loadStreams } from "./load/stream.ts";
import { STREAM_API_KEY, streamTarget } from "./servers/streaming.ts";
import { chatTarget, queryTarget } from "./suites/query.ts";
import type { Server } from "./servers/process.ts";
import { writeResult } from "./results.ts";
import { gatewayBundle, openRun, startGateway, startUpstream } from "./servers/servers.ts";
import { tableOf } from "./table.ts";
import { z } from "zod";

const { values, positionals } = parseArgs({
  options: {
    at: { type: "string" },
    seconds: { type: "string", default: "5" },
    "interval-us": { type: "string", default: "200" },
    top: { type: "string", default: "30" },
    by: { type: "string", default: "self" },
    "new-runs": { type: "boolean", default: false },
    strict: { type: "boolean", default: false },
    paced: { type: "boolean", default: false },
  },
  allowPositionals: true,
});
const WHATS = ["query", "chat", "replay", "keyed", "batch", "dag", "native", "read", "js"] as const;
const what = WHATS.find((each) => each === positionals[0]);
if (what === undefined) {
  console.error(`node bench/profile.ts ${WHATS.join("|")}`);
  process.exit(2);
}
const at = Number(values.at ?? (what === "batch" ? 48 : 16));
const top = Number(values.top);

const isStream = what === "native" || what === "read" || what === "js";
const PACE_MS = 5;
const GRAPH_TASKS = 10_000;

/** Calls answered under load for `ms`. */
async function callsDuring(gateway: Server, token: string, ms: number): Promise<number> {
  if (what === "query" || what === "chat") {
    const target = what === "query" ? queryTarget(gateway, token) : chatTarget(gateway, token);
    return (await load({ ...target, concurrency: at, requests: 1_000_000, msMax: ms })).requests;
  }
  if (what === "replay" || what === "keyed")
    return await replay(gateway, token, { concurrency: at, hasKeys: what === "keyed", msMax: ms });
  if (isStream) {
    const target = await streamTarget(what, upstream, gateway);
    const plan = { ...target, concurrency: at, requests: 1_000_000, msMax: ms };
    return values.paced ? (await loadPaced(plan)).events : (await loadStreams(plan)).streams;
  }
  const endMs = performance.now() + ms;
  let calls = 0;
  if (what === "dag") {
    for (; performance.now() < endMs; calls += GRAPH_TASKS)
      await sendDag(gateway, await openRun(gateway), bodyOf(GRAPH_TASKS, true));
    return calls;
  }
  for (; performance.now() < endMs; calls += 1_000)
    await sendBatch(gateway, values["new-runs"] ? await openRun(gateway) : token, { n: 1_000, width: at });
  return calls;
}

function printCosts(title: string, costs: readonly Cost[], busyUs: number, calls: number): void {
  const share = (us: number) => `${((us / busyUs) * 100).toFixed(1)} %`;
  const sorted = values.by === "total" ? costs.toSorted((a, b) => b.totalUs - a.totalUs) : costs;
  const rows = sorted.slice(0, top).map((cost) => ({
    "self ": share(cost.selfUs),
    "µs/call": (cost.selfUs / calls).toFixed(1),
    "with callees": cost.totalUs === 0 ? "" : share(cost.totalUs),
    [title]: cost.name,
  }));
  console.log(`\n${tableOf(rows)}`);
}

await using upstream = await startUpstream(values.paced ? { paceMs: PACE_MS } : {});
await using gateway = await startGateway(upstream, {
  inspector: true,
  leasedCredit: values.strict ? "off" : "on",
  ...(isStream && what !== "native" ? { apiKey: STREAM_API_KEY } : {}),
});
const token = await (what === "replay" || what === "keyed" ? openRecordedRun(gateway) : openRun(gateway));
using inspector = await connectInspector(gateway.inspectorUrl ?? "");
await inspector.call("Profiler.enable");
await inspector.call("Profiler.setSamplingInterval", { interval: Number(values["interval-us"]) });
// The warm-up is profiled too and thrown away: V8 keeps the lines of optimised code only if a profiler was there.
await inspector.call("Profiler.start");
await callsDuring(gateway, token, 2_000);
await inspector.call("Profiler.stop");
await inspector.call("Profiler.start");
const startedMs = performance.now();
const calls = await callsDuring(gateway, token, Number(values.seconds) * 1_000);
const wallMs = performance.now() - startedMs;
const { profile } = z.object({ profile: z.unknown() }).parse(await inspector.call("Profiler.stop"));

const path = writeResult(`${what}-${at}.cpuprofile`, JSON.stringify(profile));
const { busyUs, idleUs, files, functions, lines } = foldProfile(cpuProfile.parse(profile), await gatewayBundle());
console.log(
  `${what} at ${at}: ${calls} calls in ${wallMs.toFixed(0)} ms, ${((wallMs / calls) * 1_000).toFixed(0)} µs each`,
);
console.log(
  `isolate busy ${(busyUs / 1_000).toFixed(0)} ms, idle ${(idleUs / 1_000).toFixed(0)} ms; shares are of busy time`,
);
printCosts("file", files, busyUs, calls);
printCosts("function", functions, busyUs, calls);
printCosts("line", lines, busyUs, calls);
console.log(`\n${path}`);
