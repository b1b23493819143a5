/**
 * `npm run bench` = `node bench/run.ts [--quick] [--rounds=n] [--variants=a,b] [--baseline=path] [batch] [slow]
 * [query] [stream] [paced]`: measures the suites named, or all, prints a table of medians for each and writes every raw round to bench/results.
 * README.md explains the figures.
 */
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { machine, writeResult } from "./results.ts";
import { medianOf, runRounds } from "./suite.ts";
import type { Suite } from "./suite.ts";
import { batchSuite } from "./suites/batch.ts";
import { pacedSuite } from "./suites/paced.ts";
import { querySuite } from "./suites/query.ts";
import { slowSuite } from "./suites/slow.ts";
import { streamSuite } from "./suites/stream.ts";
import { tableOf } from "./table.ts";

const { values, positionals } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    rounds: { type: "string" },
    variants: { type: "string" },
    baseline: { type: "string" },
  },
  allowPositionals: true,
});
const options = {
  quick: values.quick,
  baseline: values.baseline === undefined ? undefined : resolve(values.baseline),
};
const suites: Suite[] = [
  batchSuite(options),
  slowSuite(options),
  querySuite(options),
  streamSuite(options),
  pacedSuite(options),
];
const unknown = positionals.filter((name) => !suites.some((suite) => suite.name === name));
if (unknown.length > 0) {
  console.error(`no suite ${unknown.join(", ")}; there are ${suites.map((suite) => suite.name).join(", ")}`);
  process.exit(2);
}

const rounds = Number(values.rounds ?? (values.quick ? 1 : 3));
const chosen = suites.filter((suite) => positionals.length === 0 || positionals.includes(suite.name));
const measured: Record<string, unknown> = { at: new Date().toISOString(), machine: machine(), quick: values.quick };
const wanted = values.variants?.split(",");
for (const suite of chosen) {
  const cells = suite.cells.filter((cell) => wanted === undefined || wanted.includes(cell.variant));
  const raw = await runRounds({ ...suite, cells }, rounds, (line) => console.error(line));
  const table = suite.table(medianOf(raw));
  measured[suite.name] = { title: suite.title, table, rounds: raw };
  console.log(`\n${suite.title}; medians of ${rounds} round(s)\n\n${tableOf(table)}\n`);
}
console.log(`raw rounds: ${writeResult("bench.json", JSON.stringify(measured, null, 2))}`);
