/**
 * `node bench/tails.ts query|chat [--at=1] [--seconds=8] [--latency-ms=20] [--strict]`: what the slowest hundredth of calls waited for.
 * Prints the stages of all calls and of the slow ones (before their upstream was asked, at the upstream, after it answered), what the
 * gateway's isolate did in the first and the last of them, and for how many slow calls each of these was the most. The upstream and
 * the clients are one process; the isolate's time comes from a CPU profile, whose clock is the machine's, as theirs is.
 */
import { once } from "node:events";
import { createServer } from "node:http";
import { parseArgs } from "node:util";
import { z } from "zod";
import { cpuProfile, momentsOf, type Moment } from "./cpu-profile.ts";
import { Connection } from "./load/connection.ts";
import { MODEL } from "./load/prompts.ts";
import { connectInspector } from "./servers/inspector.ts";
import type { Server } from "./servers/process.ts";
import { gatewayBundle, openRun, startGateway } from "./servers/servers.ts";
import { percentile } from "./stats.ts";
import { chatTarget, queryTarget } from "./suites/query.ts";
import { tableOf } from "./table.ts";

const { values, positionals } = parseArgs({
  options: {
    at: { type: "string", default: "1" },
    seconds: { type: "string", default: "8" },
    "latency-ms": { type: "string", default: "20" },
    strict: { type: "boolean", default: false },
  },
  allowPositionals: true,
});
const [what] = positionals;
if (what !== "query" && what !== "chat") {
  console.error("node bench/tails.ts query|chat");
  process.exit(2);
}
const WARM_UP_MS = 2_000;
const INTERVAL_US = 200;
const SLOW_SHARE = 0.99;
const ROWS = 14;

/** When a call was sent, reached the upstream, was answered there, and was answered; µs of the monotonic clock. */
type Call = { sentUs: number; askedUs: number; toldUs: number; endedUs: number };

const calls = new Map<number, Call>();
const nowUs = (): number => Number(process.hrtime.bigint() / 1_000n);

const reply = JSON.stringify({
  ...{ id: "chatcmpl-bench", object: "chat.completion", created: 1_763_712_000, model: MODEL },
  choices: [{ index: 0, message: { role: "assistant", content: "One sentence." }, finish_reason: "stop" }],
  usage: { prompt_tokens: 12, completion_tokens: 7, total_tokens: 19 },
});
const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(reply) };

/** The upstream, which notes when it was asked and when it answered. */
async function startNotingUpstream(latencyMs: number): Promise<Server> {
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (piece: Buffer) => (body += piece.toString()));
    request.on("end", () => {
      const call = calls.get(Number(/part (\d+) of/.exec(body)?.[1]));
      if (call !== undefined) call.askedUs = nowUs();
      setTimeout(() => {
        if (call !== undefined) call.toldUs = nowUs();
        response.writeHead(200, headers);
        response.end(reply);
      }, latencyMs);
    });
  });
  server.keepAliveTimeout = 300_000;
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("a TCP socket has no port");
  return {
    ...{ url: `http://127.0.0.1:${address.port}`, rssBytes: () => 0, cpuMs: () => 0, output: () => "" },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

let lastIndex = 0;

/** A closed loop of clients for so long. */
async function loadFor(ms: number, concurrency: number, target: ReturnType<typeof queryTarget>): Promise<Call[]> {
  const url = new URL(target.url);
  const lines = Object.entries(target.headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const head = `POST ${url.pathname} HTTP/1.1\r\nhost: ${url.host}\r\ncontent-type: application/json\r\n${lines.join("")}`;
  const done: Call[] = [];
  const endMs = performance.now() + ms;
  const client = async (): Promise<void> => {
    const connection = new Connection(url);
    while (performance.now() < endMs) {
      const index = ++lastIndex;
      const body = target.body(index);
      const call: Call = { sentUs: nowUs(), askedUs: Number.NaN, toldUs: Number.NaN, endedUs: Number.NaN };
      calls.set(index, call);
      const status = await connection.send(`${head}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
      if (status !== 200) throw new Error(`${target.url} answered ${status}`);
      call.endedUs = nowUs();
      calls.delete(index);
      done.push(call);
    }
    connection.close();
  };
  await Promise.all(Array.from({ length: concurrency }, client));
  return done;
}

/** What the isolate was in, in words: the outermost of these that is on the stack. */
const ACTIVITIES: readonly (readonly [RegExp, string])[] = [
  [/^\(idle\)/, "nothing (idle)"],
  [/^\(garbage collector\)/, "garbage collection"],
  [/^transaction|^exec \[native\]|putShard|^put durable-objects\/run\/store/, "run object: writes rows"],
  [/^finish durable-objects\/run\/turns/, "run object: a turn"],
  [/reportCredit|takeCreditReport|applyReport/, "run object: takes a report"],
  [/alarm/, "an alarm"],
  [/durable-objects\//, "run object: other"],
  [/report src\/objects\/clients\/credit|acknowledged/, "edge: reports credit"],
  [/settleSoon|settlements\.ts/, "edge: settlements"],
  [/src\/http\/app\.ts|hono/, "edge: requests"],
  [/^\(program\)/, "native code outside of JavaScript"],
];

/** What V8 itself names; functions without a name are in brackets as well. */
const OF_V8 = /^\((?:idle|garbage collector|program|root)\)/;

function activityOf({ stack }: Moment): string {
  const leaf = stack.at(-1) ?? "(program)";
  if (OF_V8.test(leaf)) return ACTIVITIES.find(([pattern]) => pattern.test(leaf))?.[1] ?? leaf;
  for (const [pattern, name] of ACTIVITIES) if (stack.some((label) => pattern.test(label))) return name;
  return "edge: continuations and the rest";
}

/** Time of the isolate between two points, by activity. */
function within(moments: readonly Moment[], fromUs: number, toUs: number): Map<string, number> {
  const sums = new Map<string, number>();
  let low = 0;
  for (let high = moments.length; low < high;) {
    const middle = (low + high) >> 1;
    if ((moments[middle]?.toUs ?? Infinity) <= fromUs) low = middle + 1;
    else high = middle;
  }
  for (let at = low; at < moments.length; at += 1) {
    const moment = moments[at];
    if (moment === undefined || moment.fromUs >= toUs) break;
    const us = Math.min(toUs, moment.toUs) - Math.max(fromUs, moment.fromUs);
    const name = activityOf(moment);
    sums.set(name, (sums.get(name) ?? 0) + us);
  }
  return sums;
}

/** The same of the two stages of a call in which the gateway has it. */
function activitiesOf(moments: readonly Moment[], { sentUs, askedUs, toldUs, endedUs }: Call): Map<string, number> {
  const sums = within(moments, sentUs, askedUs);
  for (const [name, us] of within(moments, toldUs, endedUs)) sums.set(name, (sums.get(name) ?? 0) + us);
  return sums;
}

const ms = (us: number): string => (us / 1_000).toFixed(2);
const mean = (figures: readonly number[]): number => figures.reduce((sum, each) => sum + each, 0) / figures.length;
const addedUs = ({ sentUs, askedUs, toldUs, endedUs }: Call): number => endedUs - sentUs - (toldUs - askedUs);

function stagesOf(name: string, some: readonly Call[]): Record<string, string> {
  return {
    calls: String(some.length),
    "before its upstream is asked, ms": ms(mean(some.map(({ sentUs, askedUs }) => askedUs - sentUs))),
    "at the upstream": ms(mean(some.map(({ askedUs, toldUs }) => toldUs - askedUs))),
    "after it answered": ms(mean(some.map(({ toldUs, endedUs }) => endedUs - toldUs))),
    "added p50": ms(percentile(some.map(addedUs), 0.5)),
    "added p99": ms(percentile(some.map(addedUs), 0.99)),
    of: name,
  };
}

function print(done: readonly Call[], moments: readonly Moment[]): void {
  const sorted = done.toSorted((a, b) => addedUs(a) - addedUs(b));
  const slow = sorted.slice(Math.floor(sorted.length * SLOW_SHARE));
  console.log(tableOf([stagesOf("all", done), stagesOf("the slowest hundredth", slow)]));
  const ofAll = new Map<string, number>();
  for (const call of done)
    for (const [name, us] of activitiesOf(moments, call)) ofAll.set(name, (ofAll.get(name) ?? 0) + us / done.length);
  const ofSlow = new Map<string, number>();
  const most = new Map<string, number>();
  for (const call of slow) {
    const sums = activitiesOf(moments, call);
    for (const [name, us] of sums) ofSlow.set(name, (ofSlow.get(name) ?? 0) + us / slow.length);
    // Beyond what such a call takes anyway.
    const excess = [...sums].map(([name, us]) => [name, us - (ofAll.get(name) ?? 0)] as const);
    const [first] = excess.toSorted((a, b) => b[1] - a[1]);
    if (first !== undefined) most.set(first[0], (most.get(first[0]) ?? 0) + 1);
  }
  const rows = [...ofSlow].toSorted((a, b) => b[1] - a[1]).slice(0, ROWS);
  console.log(
    `\n${tableOf(
      rows.map(([name, us]) => ({
        "of a slow call, ms": ms(us),
        "of any call": ms(ofAll.get(name) ?? 0),
        "most beyond any call's, for": `${most.get(name) ?? 0} of ${slow.length}`,
        "what the isolate did meanwhile": name,
      })),
    )}`,
  );
}

await using upstream = await startNotingUpstream(Number(values["latency-ms"]));
await using gateway = await startGateway(upstream, { inspector: true, leasedCredit: values.strict ? "off" : "on" });
const token = await openRun(gateway);
const target = what === "query" ? queryTarget(gateway, token) : chatTarget(gateway, token);
using inspector = await connectInspector(gateway.inspectorUrl ?? "");
await inspector.call("Profiler.enable");
await inspector.call("Profiler.setSamplingInterval", { interval: INTERVAL_US });
await inspector.call("Profiler.start");
await loadFor(WARM_UP_MS, Number(values.at), target);
await inspector.call("Profiler.stop");
await inspector.call("Profiler.start");
const done = await loadFor(Number(values.seconds) * 1_000, Number(values.at), target);
const { profile } = z.object({ profile: cpuProfile }).parse(await inspector.call("Profiler.stop"));
console.log(`${what} at ${values.at}: ${done.length} calls in ${values.seconds} s`);
print(done, momentsOf(profile, await gatewayBundle()));
