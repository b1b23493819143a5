/**
 * `npm run bench:leaving` = `node bench/leaving.ts [--rounds=n] [--only=way]`: on each way in, 200 calls of one run wait for 24
 * permits, and after 30 answers their program is killed. Does the next call start at once, is everything free again, and is
 * nothing charged for what was never sent? Exit status 1 if a guarantee does not hold. README.md explains the figures.
 */
import { parseArgs } from "node:util";
import { startSplice } from "../scripts/local/splice.ts";
import { startGateway } from "../test/support/gateway.ts";
import { leave, type Leave, type Way } from "./leaving/round.ts";
import { LeavingUpstream } from "./leaving/upstream.ts";
import { machine, writeResult } from "./results.ts";
import { tableOf } from "./table.ts";

const { values } = parseArgs({
  options: { rounds: { type: "string", default: "100" }, only: { type: "string", default: "" } },
});
const rounds = Number(values.rounds);
const LATENCY_MS = 25;
const NEXT_MS_MAX = 100;
const FREE_MS_MAX = 2_000;

const chat = (more: object) => (content: string) => ({
  model: "m",
  max_tokens: 100,
  messages: [{ role: "user", content }],
  ...more,
});
const replay = { replay: "run" };
const query: Omit<Way, "name"> = { path: "/query", bodyOf: (prompt) => ({ prompt, max_tokens: 100 }) };
const plain: Omit<Way, "name"> = { path: "/v1/chat/completions", bodyOf: chat({}) };
const stream: Omit<Way, "name"> = { path: "/v1/chat/completions", bodyOf: chat({ stream: true }) };
const ways: readonly Way[] = [
  { name: "/query", ...query },
  { name: "/query, replay", ...query, settings: replay },
  { name: "/llm_query", path: "/llm_query", bodyOf: (prompt) => ({ prompt }) },
  { name: "/v1 chat", ...plain },
  { name: "/v1 chat, replay", ...plain, settings: replay },
  { name: "/v1 stream", ...stream },
  { name: "/v1 stream, replay", ...stream, settings: replay },
  {
    name: "/v1/messages",
    path: "/v1/messages",
    bodyOf: (content) => ({ model: "claude", max_tokens: 100, messages: [{ role: "user", content }] }),
  },
];
const WAYS = ways.filter(({ name }) => name.includes(values.only));

const upstream = new LeavingUpstream(LATENCY_MS);
const base = await upstream.start();
const prices = { "*": { input: 1, output: 1 } };
const gateway = await startGateway({
  vars: {
    DEFAULT_MODEL: "m",
    UPSTREAMS: {
      up: { kind: "openai", base_url: `${base}/v1`, models: ["m"], prices, max_in_flight: 512 },
      claude: { kind: "anthropic", base_url: base, models: ["claude"], prices, api_key: "none" },
    },
  },
});
const { hostname, port } = new URL(gateway.url);
const splice = await startSplice({ host: "127.0.0.1", port: 0 }, () => ({ host: hostname, port: Number(port) }));
const world = { url: `http://127.0.0.1:${splice.port}`, openRun: gateway.openRun, upstream };

const leaves: Leave[] = [];
const rows: Record<string, string>[] = [];
for (const [at, way] of WAYS.entries()) {
  const own: Leave[] = [];
  for (let round = 0; round < rounds; round++) own.push(await leave(world, way, at * rounds + round));
  leaves.push(...own);
  rows.push(rowOf(way.name, own));
  console.error(way.name);
}
await splice.close();
await gateway.stop();
upstream.stop();
console.log(`${rounds} mass leaves on each way in\n\n${tableOf(rows)}\n`);
console.log(`raw figures: ${writeResult("leaving.json", JSON.stringify({ machine: machine(), leaves }))}`);
process.exitCode = rows.every(({ promise }) => promise === "kept") ? 0 : 1;

function rowOf(way: string, own: readonly Leave[]): Record<string, string> {
  const nextMs = own.map((one) => one.nextMs ?? Infinity).toSorted((a, b) => a - b);
  const freeMs = own.map((one) => one.freeMs ?? Infinity).toSorted((a, b) => a - b);
  const quietMs = own.map((one) => one.quietMs).toSorted((a, b) => a - b);
  const late = nextMs.filter((ms) => ms > NEXT_MS_MAX).length;
  const held = freeMs.filter((ms) => ms > FREE_MS_MAX).length;
  const unsent = own.reduce((sum, { charged, arrived }) => sum + Math.max(0, charged - arrived), 0);
  return {
    "next call ms, median": middle(nextMs).toFixed(0),
    "next call ms, worst": (nextMs.at(-1) ?? 0).toFixed(0),
    "at rest ms, median": middle(quietMs).toFixed(0),
    [`later than ${NEXT_MS_MAX} ms`]: `${late}`,
    "free after ms, worst": (freeMs.at(-1) ?? 0).toFixed(0),
    [`reserved after ${FREE_MS_MAX / 1_000} s`]: `${held}`,
    "charged but not sent": `${unsent}`,
    promise: late + held + unsent === 0 ? "kept" : "MISSED",
    way,
  };
}

function middle(sorted: readonly number[]): number {
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}
