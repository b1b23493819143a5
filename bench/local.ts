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
import { machine, writeResult } from "./results.ts";
import { shownRow, type Part } from "./parts/row.ts";
import { tableOf } from "./table.ts";

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
const unknown = positionals.filter((name) => parts[name] === undefined);
if (unknown.length > 0) {
  console.error(`no part ${unknown.join(", ")}; there are ${Object.keys(parts).join(", ")}`);
  process.exit(2);
}
const found: Part = { rows: [], faults: [] };
for (const [name, measure] of Object.entries(parts)) {
  if (positionals.length > 0 && !positionals.includes(name)) continue;
  const { rows, faults } = await measure();
  found.rows.push(...rows);
  found.faults.push(...faults.map((fault) => `${name}: ${fault}`));
}
console.log(`\n${tableOf(found.rows.map(shownRow))}`);
for (const fault of found.faults) console.log(fault);
const result = { at: new Date().toISOString(), machine: machine(), quick, turns, ...found };
console.log(`\nfigures: ${writeResult("local.json", JSON.stringify(result, null, 2))}`);
process.exit(found.rows.some(({ exact, met }) => exact && met === false) ? 1 : 0);
