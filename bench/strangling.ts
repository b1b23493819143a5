/**
 * `npm run bench:strangling [-- --calls=1000 --seed=1 --only=name]`: does the limit leave honest programs alone? Prints how
 * many calls were answered whole, how wide they ran against what their true costs allow, and what was spent on answers
 * that were requested again. Exit status 1 if a guarantee does not hold. README.md explains the figures.
 */
import { parseArgs } from "node:util";
import { machine, writeResult } from "./results.ts";
import { measure, type Case, type Measured } from "./strangling/measure.ts";
import { tableOf } from "./table.ts";

const { values } = parseArgs({
  options: {
    calls: { type: "string", default: "1000" },
    seed: { type: "string", default: "1" },
    only: { type: "string", default: "" },
  },
});
const calls = Number(values.calls);

const UNCUT_MIN = 0.98;
const WIDTH_MIN = 0.9;
const WASTE_MAX = 0.02;

const exactly: Case["limitOf"] = (trueNanoUsd, worstNanoUsd) => trueNanoUsd + worstNanoUsd;
const twice: Case["limitOf"] = (trueNanoUsd) => 2 * trueNanoUsd;
const capped = { calls, shape: "agents", maxTokens: 4_000, limitOf: exactly } as const;
const uncapped = { calls, maxTokens: null, limitOf: twice, width: 64 } as const;

/** `exact`: calls have caps, and the limit is their cost plus one worst case. `free`: calls have no caps. */
const CASES: readonly (Case & { promise: "exact" | "free" })[] = [
  { ...capped, promise: "exact", name: "exact, /batch, 64 wide", width: 64, way: "batch" },
  { ...capped, promise: "exact", name: "exact, /query, 16 wide", width: 16, way: "query" },
  { ...uncapped, promise: "free", name: "no cap, /batch of agents", shape: "agents", way: "batch" },
  { ...uncapped, promise: "free", name: "no cap, /batch of labels", shape: "labels", way: "batch" },
];

function promised({ promise }: { promise: "exact" | "free" }, one: Measured): string {
  const isWhole = one.uncut >= UNCUT_MIN * one.calls && one.refused + one.failed === 0;
  const isWide = one.widthShare >= WIDTH_MIN && one.wasteShare <= WASTE_MAX;
  const kept = promise === "exact" ? isWhole : isWhole && isWide;
  return kept ? "kept" : "MISSED";
}

const percent = (share: number): string => `${(100 * share).toFixed(1)} %`;
const rows: Record<string, string>[] = [];
const figures: Measured[] = [];
for (const one of CASES.filter(({ name }) => name.includes(values.only))) {
  console.error(one.name);
  const result = await measure(one, Number(values.seed));
  figures.push(result);
  rows.push({
    uncut: `${result.uncut}`,
    cut: `${result.cut}`,
    refused: `${result.refused}`,
    failed: `${result.failed}`,
    width: percent(result.widthShare),
    "mean width": result.meanWidth.toFixed(1),
    "wall s": (result.wallMs / 1_000).toFixed(1),
    "without limit s": (result.freeMs / 1_000).toFixed(1),
    "ideal s": (result.idealMs / 1_000).toFixed(1),
    waste: percent(result.wasteShare),
    "limit used": percent(result.usedShare),
    promise: promised(one, result),
    case: one.name,
  });
}
console.log(`${calls} calls each, seed ${values.seed}\n\n${tableOf(rows)}\n`);
console.log(`raw figures: ${writeResult("strangling.json", JSON.stringify({ machine: machine(), figures }))}`);
process.exitCode = rows.every(({ promise }) => promise === "kept") ? 0 : 1;
