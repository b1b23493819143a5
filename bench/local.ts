/**
 * `npm run bench:local` = `node bench/local.ts [--quick] [--rounds=n] [speed] [memory] [leaving] [crash]`: what `npm start`
 * costs against plain workerd, how soon it notices clients that leave, and what a crash of workerd loses. README.md
 * explains the figures. Exit status 1 if something is lost or not noticed.
 */
import { parseArgs } from "node:util";
import { measureCrash } from "./local/crash.ts";
import { measureLeaving } from "./local/leaving.ts";
import { measureMemory } from "./local/memory.ts";
import { speedSuite } from "./local/speed.ts";
import { machine, writeResult } from "./results.ts";
import { shownRow, type Part } from "./row.ts";
import { medianOf, runRounds, type Round } from "./suite.ts";
import { tableOf } from "./table.ts";

const { values, positionals } = parseArgs({
  options: { quick: { type: "boolean", default: false }, rounds: { type: "string" } },
  allowPositionals: true,
});
const { quick } = values;
const parts: Record<string, () => Promise<Part>> = {
  memory: measureMemory,
  leaving: () => measureLeaving(quick ? 12 : 100),
  crash: () => measureCrash(quick ? 1 : 5),
};
const names = ["speed", ...Object.keys(parts)];
const unknown = positionals.filter((name) => !names.includes(name));
if (unknown.length > 0) {
  console.error(`no part ${unknown.join(", ")}; there are ${names.join(", ")}`);
  process.exit(2);
}
const isWanted = (name: string): boolean => positionals.length === 0 || positionals.includes(name);

let speed: Round[] = [];
if (isWanted("speed")) {
  const suite = speedSuite({ quick });
  const rounds = Number(values.rounds ?? (quick ? 1 : 3));
  speed = await runRounds(suite, rounds, (line) => console.error(line));
  console.log(`\n${suite.title}; medians of ${rounds} round(s)\n\n${tableOf(suite.table(medianOf(speed)))}`);
}
const found: Part = { rows: [], faults: [] };
for (const [name, measure] of Object.entries(parts)) {
  if (!isWanted(name)) continue;
  const { rows, faults } = await measure();
  found.rows.push(...rows);
  found.faults.push(...faults.map((fault) => `${name}: ${fault}`));
}
if (found.rows.length > 0) console.log(`\n${tableOf(found.rows.map(shownRow))}`);
for (const fault of found.faults) console.log(fault);
const result = { at: new Date().toISOString(), machine: machine(), quick, speed, ...found };
console.log(`\nfigures: ${writeResult("local.json", JSON.stringify(result, null, 2))}`);
process.exit(found.rows.some(({ exact, met }) => exact && met === false) ? 1 : 0);
