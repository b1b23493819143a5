/**
 * `npm run bench:local` = `node bench/local.ts [--quick] [--pairs=n] [speed] [memory] [leaving] [crash] [metrics]`: what `npm start`
 * costs against plain workerd, how soon it notices clients that leave, what a crash of workerd loses, and whether `/metrics` adds up
 * after sleeps and kills. README.md explains the figures. Exit status 1 if something is lost or not noticed.
 */
import { parseArgs } from "node:util";
import { measureCrash } from "./local/crash.ts";
import { measureLeaving } from "./local/leaving.ts";
import { measureMetrics } from "./local/metrics.ts";
import { measureMemory } from "./local/memory.ts";
import { measureSpeed, type Turn } from "./local/speed.ts";
import { runParts } from "./parts/parts.ts";
import type { Part } from "./parts/row.ts";

const { values, positionals } = parseArgs({
  options: { quick: { type: "boolean", default: false }, pairs: { type: "string" } },
  allowPositionals: true,
});
const { quick } = values;
/** The raw figures of `speed`. */
let turns: Turn[] = [];
const parts: Record<string, () => Promise<Part>> = {
  speed: async () => {
    const measured = await measureSpeed(Number(values.pairs ?? (quick ? 3 : 15)));
    turns = measured.turns;
    return measured;
  },
  memory: measureMemory,
  leaving: () => measureLeaving(quick ? 12 : 100),
  crash: () => measureCrash(quick ? 1 : 5),
  metrics: () => measureMetrics(quick ? 6 : 24),
};

await runParts(parts, { only: positionals, file: "local.json", more: () => ({ quick, turns }) });
process.exit();
