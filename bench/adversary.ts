/**
 * `npm run bench:adversary [-- --requests=100000 --runs=600 --seed=1 --foreign=1 --only=resolves,deepseek]`: is the budget hard
 * against the upstream's own bill, whatever a client sends and however the upstream reads and bills it? Exit status 1 when
 * a guarantee does not hold. README.md explains the figures.
 */
import { parseArgs } from "node:util";
import { campaign, FOREIGN_SHARE } from "./adversary/campaign.ts";
import { faultTable, personalityTable } from "./adversary/tables.ts";
import { machine, writeResult } from "./results.ts";
import { tableOf } from "./table.ts";

const { values } = parseArgs({
  options: {
    requests: { type: "string", default: "100000" },
    runs: { type: "string", default: "600" },
    seed: { type: "string", default: "1" },
    abreast: { type: "string", default: "6" },
    batches: { type: "string", default: "40" },
    only: { type: "string", default: "" },
    foreign: { type: "string", default: String(FOREIGN_SHARE) },
    show: { type: "string", default: "12" },
  },
});
const seed = Number(values.seed);

const result = await campaign({
  ...{ requests: Number(values.requests), runs: Number(values.runs), seed, abreast: Number(values.abreast) },
  batches: Number(values.batches),
  drawn: { only: values.only.split(",").filter((name) => name !== ""), foreign: Number(values.foreign) },
  progress: (line) => console.error(line),
});

console.log(
  `seed ${seed}: ${result.calls} calls in ${result.runs} runs, ${result.upstreamRequests} reached the upstream, ` +
    `${result.seconds.toFixed(0)} s; settings known: ${result.knows.join(", ") || "none"}\n`,
);
console.log(
  result.holes.length === 0 ? "known holes: all closed\n" : `known holes, open:\n  ${result.holes.join("\n  ")}\n`,
);
console.log(`${tableOf(personalityTable(result))}\n`);
console.log(`${tableOf(faultTable(result))}\n`);
// Those of few requests say most.
const calls = new Map(result.results.map(({ plan, calls }) => [plan.run, calls]));
const faults = [...result.faults].sort((a, b) => (calls.get(a.run) ?? 0) - (calls.get(b.run) ?? 0));
for (const { kind, run, personality, what, suspects } of faults.slice(0, Number(values.show))) {
  console.log(`${kind} in run ${run} (${personality}): ${what}\n   ${suspects.join("\n   ")}`);
}
for (const body of result.unmarked) console.log(`without a marker: ${body}`);
const { results: _, ...figures } = result;
console.log(`raw figures: ${writeResult("adversary.json", JSON.stringify({ machine: machine(), seed, ...figures }))}`);
process.exitCode = result.faults.length === 0 && result.unmarked.length === 0 ? 0 : 1;
