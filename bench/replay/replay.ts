/**
 * `npm run bench:replay [-- --only=lookup,rerun,kills] [--kills=100] [--calls=1000]`: what a program that runs again
 * pays, and how long it takes. Exit status 1 if a guarantee does not hold. README.md explains the figures.
 */
import { parseArgs } from "node:util";
import { measureKills } from "./kills.ts";
import { measureLookup } from "./lookup.ts";
import { measureRerun } from "./rerun.ts";
import { machine, writeResult } from "../results.ts";
import { shownRow, type Part } from "../row.ts";
import { tableOf } from "../table.ts";

const { values } = parseArgs({
  options: {
    only: { type: "string", default: "" },
    kills: { type: "string", default: "100" },
    calls: { type: "string", default: "1000" },
  },
});

const PARTS: Readonly<Record<string, () => Promise<Part>>> = {
  lookup: () => Promise.resolve(measureLookup()),
  rerun: () => measureRerun(Number(values.calls)),
  kills: () => measureKills(Number(values.kills), Number(values.calls)),
};

const parts: Part[] = [];
for (const name of values.only === "" ? Object.keys(PARTS) : values.only.split(",")) {
  const measure = PARTS[name];
  if (measure === undefined) throw new Error(`--only: expected some of ${Object.keys(PARTS).join(", ")}`);
  console.error(name);
  const part = await measure();
  console.log(`${name}\n${tableOf(part.rows.map(shownRow))}\n${part.faults.join("\n")}`);
  parts.push(part);
}
const rows = parts.flatMap((part) => part.rows);
console.log(`figures: ${writeResult("replay.json", JSON.stringify({ machine: machine(), rows }, null, 2))}`);
process.exitCode = rows.some(({ met, exact: isExact }) => isExact && met === false) ? 1 : 0;
