/**
 * npm run simulate -- [--seed=1] [--hours=24] [--runs=200] [--slots=100] [--kinds=graph,children] [--calm]
 *
 * Simulates the whole gateway; see README.md. Exits with 1 and the seed if an invariant does not hold.
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
    kinds: KINDS.filter((kind) => values.kinds.split(",").includes(kind)),
    hasFaults: !values.calm,
  },
  compileGateway(await bundleGateway(ROOT)),
);
const { violations, ...figures } = outcome;
console.log({ ...figures, realSeconds: Math.round((performance.now() - startedMs) / 100) / 10 });
for (const violation of violations) console.log(violation);
if (violations.length > 0) process.exitCode = 1;
