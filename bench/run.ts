/**
 * `npm run bench` = `node bench/run.ts [--quick] [--rounds=n] [--variants=a,b] [--baseline=path] [--peers[=a,b]]
 * [--write-docs] [suite …]`:
 * measures the suites named, or all, prints a table of medians for each and writes every raw round to bench/results. `--peers` also
 * measures gateways from PyPI, all or those named. `--write-docs` measures the suites of docs/benchmarks.md and writes that page and its data.
 * README.md explains the figures.
 */
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { addedSuite } from "./field/added.ts";
import { documentSuite } from "./field/document.ts";
import { fanOutSuite } from "./field/fan-out.ts";
import { ledgerSuite } from "./field/ledger.ts";
import { overshootSuite } from "./field/overshoot.ts";
import { rateLimitSuite } from "./field/rate-limit.ts";
import { rerunSuite } from "./field/rerun.ts";
import { throughputSuite } from "./field/throughput.ts";
import { peersIn } from "./peers/table.ts";
import { failuresOf, textOf, type ResultFile } from "./report/data.ts";
import { writePages } from "./report/write.ts";
import { gatewaysOf, machine, versions, writeResult } from "./results.ts";
import { medianOf, runRounds } from "./suite.ts";
import type { Suite } from "./suite.ts";
import { batchSuite } from "./suites/batch.ts";
import { creditSuite } from "./suites/credit.ts";
import { pacedSuite } from "./suites/paced.ts";
import { querySuite } from "./suites/query.ts";
import { runsSuite } from "./suites/runs.ts";
import { slowSuite } from "./suites/slow.ts";
import { streamSuite } from "./suites/stream.ts";
import { tableOf } from "./table.ts";

const { values, positionals } = parseArgs({
  args: process.argv.slice(2).map((arg) => (arg === "--peers" ? "--peers=all" : arg)),
  options: {
    quick: { type: "boolean", default: false },
    rounds: { type: "string" },
    variants: { type: "string" },
    baseline: { type: "string" },
    peers: { type: "string" },
    "write-docs": { type: "boolean", default: false },
  },
  allowPositionals: true,
});
const options = {
  quick: values.quick,
  baseline: values.baseline === undefined ? undefined : resolve(values.baseline),
  peers: peersIn(values.peers),
};
const suites: Suite[] = [
  batchSuite(options),
  slowSuite(options),
  querySuite(options),
  creditSuite(options),
  runsSuite(options),
  streamSuite(options),
  pacedSuite(options),
  addedSuite(options),
  throughputSuite(options),
  fanOutSuite(options),
  overshootSuite(options),
  ledgerSuite(options),
  rateLimitSuite(options),
  documentSuite(options),
  rerunSuite(options),
];
const unknown = positionals.filter((name) => !suites.some((suite) => suite.name === name));
if (unknown.length > 0) {
  console.error(`no suite ${unknown.join(", ")}; there are ${suites.map((suite) => suite.name).join(", ")}`);
  process.exit(2);
}

/** What docs/benchmarks.md shows, in its order. */
const PAGE_SUITES = [
  "added",
  "throughput",
  "stream",
  "paced",
  "fan-out",
  "overshoot",
  "ledger",
  "rate-limit",
  "document",
  "rerun",
];

const rounds = Number(values.rounds ?? (values.quick ? 1 : 3));
const all = values["write-docs"] ? PAGE_SUITES : suites.map((suite) => suite.name);
const names = positionals.length === 0 ? all : positionals;
const chosen = names.flatMap((name) => suites.filter((suite) => suite.name === name));
const wanted = values.variants?.split(",");
const data: ResultFile = {
  at: new Date().toISOString(),
  machine: machine(),
  versions: versions(options.peers),
  gateways: gatewaysOf(options.peers),
  quick: values.quick,
  rounds,
  suites: [],
};
for (const suite of chosen) {
  const cells = suite.cells.filter((cell) => wanted === undefined || wanted.includes(cell.variant));
  const raw = await runRounds({ ...suite, cells }, rounds, (line) => console.error(line));
  const table = suite.table(medianOf(raw));
  data.suites.push({ name: suite.name, title: suite.title, about: suite.about ?? suite.title, table, rounds: raw });
  console.log(
    `\n${suite.title}; medians of ${Math.max(...raw.map(({ round }) => round))} round(s)\n\n${tableOf(table)}\n`,
  );
  for (const [variant, reason] of failuresOf(raw)) console.log(`${variant} was not measured: ${reason}`);
}
console.log(`raw rounds: ${writeResult("bench.json", textOf(data))}`);
if (values["write-docs"]) writePages(data);
