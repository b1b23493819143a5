/**
 * npm run simulate -- [--seed=1] [--hours=24] [--runs=200] [--slots=100] [--large=0] [--huge=0] [--upstreams=1]
 *   [--kinds=graph,children] [--calm] [--shards=1] [--shard=1/2] [--until=13.5]
 *
 * Simulates the whole gateway; see README.md. Prints how far it is each quarter of a virtual hour. SIGTERM and Ctrl-C end it as
 * `--until` does, with the same figures. Exits with 1 and the seed if an invariant does not hold.
 */
import { parseArgs } from "node:util";
import { ROOT } from "../../scripts/root.ts";
import { bundleGateway } from "./bundle.ts";
import { compileGateway } from "./isolate.ts";
import { KINDS } from "./programs/work.ts";
import { END_SIGNALS, inShards, type ShardReport } from "./shards.ts";
import { simulate, type Plan, type Progress } from "./simulation.ts";

const { values } = parseArgs({
  options: {
    seed: { type: "string", default: "1" },
    hours: { type: "string", default: "24" },
    runs: { type: "string", default: "200" },
    slots: { type: "string", default: "100" },
    large: { type: "string", default: "0" },
    huge: { type: "string", default: "0" },
    upstreams: { type: "string", default: "1" },
    kinds: { type: "string", default: KINDS.join(",") },
    calm: { type: "boolean", default: false },
    shards: { type: "string", default: "1" },
    shard: { type: "string", default: "1/1" },
    until: { type: "string", default: "Infinity" },
  },
});

const startedMs = performance.now();
let isStopped = false;
for (const signal of END_SIGNALS) process.on(signal, () => (isStopped = true));
const [index = 1, count = 1] = values.shard.split("/").map(Number);
const shards = Number(values.shards);
if (shards > 1 && count > 1) throw new Error("--shards starts all shards, --shard is one of them: give one of the two");
const report = await (shards > 1 ? inShards(shards, import.meta.filename, argumentsOfShards()) : inThisProcess());
if (process.send === undefined) printed(report);
else process.send(report);
if (report.outcome.violations.length > 0) process.exitCode = 1;

async function inThisProcess(): Promise<ShardReport> {
  const plan: Plan = {
    seed: Number(values.seed),
    hours: Number(values.hours),
    runs: Number(values.runs),
    slots: Number(values.slots),
    largeShare: Number(values.large),
    hugeShare: Number(values.huge),
    upstreams: Number(values.upstreams),
    kinds: KINDS.filter((kind) => values.kinds.split(",").includes(kind)),
    hasFaults: !values.calm,
    shard: { index: index - 1, count },
    untilHour: Number(values.until),
  };
  const outcome = await simulate(plan, compileGateway(await bundleGateway(ROOT)), {
    progressed,
    isStopped: () => isStopped,
  });
  return { outcome, cpuSeconds: cpuSeconds() };
}

/** What this program was given, without the number of shards. */
function argumentsOfShards(): string[] {
  return Object.entries(values)
    .filter(([name, value]) => name !== "shards" && name !== "shard" && value !== false)
    .map(([name, value]) => (value === true ? `--${name}` : `--${name}=${value}`));
}

function progressed({ virtualHours, ended, answered, violations }: Progress): void {
  const who = count === 1 ? "" : `shard ${index}/${count}, `;
  const bytes = process.memoryUsage.rss();
  console.log(
    `${who}${Math.round(virtualHours * 100) / 100} h: ${ended} runs, ${answered} slots answered, ` +
      `${violations.length} violations; ${cpuSeconds()} s of CPU, ${Math.round(bytes / 2 ** 20)} MB`,
  );
  for (const violation of violations) console.log(violation);
}

function printed({ outcome: { violations, ...figures }, cpuSeconds: seconds }: ShardReport): void {
  console.log({
    ...figures,
    realSeconds: Math.round((performance.now() - startedMs) / 1_000),
    cpuSeconds: seconds,
    cpuMsPerSlot: Math.round((seconds / Math.max(1, figures.answered)) * 1e5) / 100,
  });
  for (const violation of violations) console.log(violation);
}

/** What this process has used. Garbage is collected next to it, by other threads, which count too. */
function cpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return Math.round((user + system) / 1e6);
}
