/**
 * npm run simulate -- [--seed=1] [--hours=24] [--runs=200] [--slots=100] [--large=0] [--upstreams=1]
 *   [--kinds=graph,children] [--calm]
 *
 * Simulates the whole gateway; see README.md. Prints how far it is each virtual hour. Exits with 1 and the seed if an invariant
 * does not hold.
 */
import { parseArgs } from "node:util";
import { ROOT } from "../../scripts/root.ts";
import { bundleGateway } from "./bundle.ts";
import { compileGateway } from "./isolate.ts";
import { KINDS } from "./programs/work.ts";
import { simulate } from "./simulation.ts";

const { values } = parseArgs({
  options: {
    seed: { type: "string", default: "1" },
    hours: { type: "string", default: "24" },
    runs: { type: "string", default: "200" },
    slots: { type: "string", default: "100" },
    large: { type: "string", default: "0" },
    upstreams: { type: "string", default: "1" },
    kinds: { type: "string", default: KINDS.join(",") },
    calm: { type: "boolean", default: false },
  },
});

const startedMs = performance.now();
const outcome = await simulate(
  {
    seed: Number(values.seed),
    hours: Number(values.hours),
    runs: Number(values.runs),
    slots: Number(values.slots),
    largeShare: Number(values.large),
    upstreams: Number(values.upstreams),
    kinds: KINDS.filter((kind) => values.kinds.split(",").includes(kind)),
    hasFaults: !values.calm,
  },
  compileGateway(await bundleGateway(ROOT)),
  ({ virtualHours, ended, completed, failed, violations }) => {
    const bytes = process.memoryUsage.rss();
    console.error(
      `${virtualHours} h: ${ended} runs, ${completed + failed} slots, ${violations.length} violations; ` +
        `${cpuSeconds()} s of CPU, ${Math.round(bytes / 2 ** 20)} MB`,
    );
    for (const violation of violations) console.error(violation);
  },
);
const { violations, ...figures } = outcome;
const slots = outcome.completed + outcome.failed;
console.log({
  ...figures,
  realSeconds: Math.round((performance.now() - startedMs) / 1_000),
  cpuSeconds: cpuSeconds(),
  cpuMsPerSlot: Math.round((cpuSeconds() / slots) * 1e5) / 100,
});
for (const violation of violations) console.log(violation);
if (violations.length > 0) process.exitCode = 1;

/** What this process has used. Garbage is collected next to it, by other threads, which count too. */
function cpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return Math.round((user + system) / 1e6);
}
