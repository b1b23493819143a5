/**
 * `npm run bench:gate [-- --only=shared,stop] [--slots=10000] [--rounds=5]`: one key and several runs against providers with real
 * limits. Exit status 1 if a guarantee does not hold. README.md explains the figures.
 */
import { parseArgs } from "node:util";
import { measureCost } from "./gate/cost.ts";
import { measureFairness } from "./gate/fairness.ts";
import { measureShared } from "./gate/shared.ts";
import { measureStop } from "./gate/stop.ts";
import { measureUnhinted } from "./gate/unhinted.ts";
import { machine, writeResult } from "./results.ts";
import { shownRow, type Part } from "./row.ts";
import { tableOf } from "./table.ts";

const { values } = parseArgs({
  options: {
    only: { type: "string", default: "" },
    slots: { type: "string", default: "10000" },
    shared: { type: "string", default: "400" },
    rounds: { type: "string", default: "5" },
  },
});

const PARTS: Readonly<Record<string, () => Promise<Part>>> = {
  shared: () => measureShared(Number(values.shared)),
  unhinted: measureUnhinted,
  stop: measureStop,
  fairness: () => measureFairness(Number(values.slots)),
  cost: () => measureCost(Number(values.rounds)),
};

const chosen = values.only === "" ? Object.keys(PARTS) : values.only.split(",");
const parts: Part[] = [];
for (const name of chosen) {
  const measure = PARTS[name];
  if (measure === undefined) throw new Error(`--only: expected some of ${Object.keys(PARTS).join(", ")}`);
  console.error(name);
  const part = await measure();
  console.log(`${name}\n${tableOf(part.rows.map(shownRow))}\n`);
  parts.push(part);
}
const rows = parts.flatMap((part) => part.rows);
console.log(`figures: ${writeResult("gate.json", JSON.stringify({ machine: machine(), rows }, null, 2))}`);
process.exitCode = rows.some(({ met, exact: isExact }) => isExact && met === false) ? 1 : 0;
