/**
 * `npm run bench:graph [-- --only=shapes,plan,size,crash] [--tasks=10000] [--rounds=3] [--kills=20]`: graphs against the longest chain
 * of their calls, against a plain batch, and under SIGKILL. Exit status 1 if a guarantee does not hold. README.md explains the
 * figures.
 */
import { parseArgs } from "node:util";
import { measureCrash } from "./graph/crash.ts";
import { measurePlans } from "./graph/plan.ts";
import { measureShapes } from "./graph/shapes.ts";
import { measureSize } from "./graph/size.ts";
import { machine, writeResult } from "./results.ts";
import { shownRow, type Part } from "./row.ts";
import { tableOf } from "./table.ts";

const { values } = parseArgs({
  options: {
    only: { type: "string", default: "" },
    tasks: { type: "string", default: "10000" },
    rounds: { type: "string", default: "3" },
    kills: { type: "string", default: "20" },
  },
});

const PARTS: Readonly<Record<string, () => Promise<Part>>> = {
  shapes: measureShapes,
  plan: measurePlans,
  size: () => measureSize(Number(values.tasks), Number(values.rounds)),
  crash: () => measureCrash(Number(values.kills)),
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
console.log(`figures: ${writeResult("graph.json", JSON.stringify({ machine: machine(), rows }, null, 2))}`);
process.exitCode = rows.some(({ met, exact: isExact }) => isExact && met === false) ? 1 : 0;
