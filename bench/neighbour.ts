/**
 * `npm run bench:neighbour [-- --only=followers,subtree] [--rounds=3] [--profile]`: what another run notices while one run does its worst. Exit status 1
 * if a promise does not hold. README.md explains the figures.
 */
import { cpus, loadavg } from "node:os";
import { parseArgs } from "node:util";
import { ATTACKS } from "./neighbour/attacks/attacks.ts";
import { ANSWER_MS_MAX, CPU_S_PER_MB_MAX, measure, P95_TIMES_MAX, type Measured } from "./neighbour/measure.ts";
import { machine, writeResult } from "./results.ts";
import { startUpstream } from "./servers/servers.ts";
import { tableOf } from "./table.ts";

const { values } = parseArgs({
  options: {
    only: { type: "string", default: "" },
    rounds: { type: "string", default: "3" },
    profile: { type: "boolean", default: false },
  },
});

/** Latency of every call at the upstream, ms. */
const LATENCY_MS = 20;

const names = values.only === "" ? Object.keys(ATTACKS) : values.only.split(",");
const results: Record<string, Measured> = {};
await using upstream = await startUpstream({ latencyMs: LATENCY_MS });
for (const name of names) {
  const attack = ATTACKS[name];
  if (attack === undefined) throw new Error(`--only: expected some of ${Object.keys(ATTACKS).join(", ")}`);
  console.error(`${name}: ${attack.what}`);
  results[name] = await measure(attack, upstream, { rounds: Number(values.rounds), profile: values.profile });
}

console.log(tableOf(Object.entries(results).map(([name, each]) => shown(name, each))));
console.log(
  `promised: p95 <= ${P95_TIMES_MAX} × quiet, max <= ${ANSWER_MS_MAX} ms, CPU <= ${CPU_S_PER_MB_MAX} s/MB, no failure`,
);
console.log(`load of the machine, processes that want a core: ${loadavg()[0]?.toFixed(1)} on ${cpus().length} cores`);
console.log(`figures: ${writeResult("neighbour.json", JSON.stringify({ machine: machine(), results }, null, 2))}`);
if (Object.values(results).some(({ misses }) => misses.length > 0)) process.exitCode = 1;

function shown(
  name: string,
  { quiet, during, ratio, sentMb, cpuMs, cpuSPerMb, statuses, misses }: Measured,
): Record<string, string> {
  return {
    attack: name,
    "quiet p50": ms(quiet.p50),
    "quiet p95": ms(quiet.p95),
    p95: ms(during.p95),
    ratio: ratio.toFixed(1),
    max: ms(during.max),
    silent: ms(during.silentMs),
    sent: `${sentMb.toFixed(1)} MB`,
    CPU: `${ms(cpuMs)}, ${cpuSPerMb.toFixed(2)} s/MB`,
    met: misses.length === 0 ? "yes" : `MISSED: ${misses.join(", ")}`,
    "answers to the attack": statuses,
  };
}

function ms(figure: number): string {
  return `${figure.toFixed(0)} ms`;
}
