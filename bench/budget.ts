/**
 * `npm run bench:budget` = `node bench/budget.ts [--rounds=n] [--quick]`: is the budget hard, and what does that cost?
 * Sends storms to a gateway, compares the upstream's own bill with limit and ledger, prints the result of each guarantee and
 * writes the raw figures to bench/results. Exit status 1 if a guarantee does not hold. README.md explains the figures.
 */
import { parseArgs } from "node:util";
import { crash } from "./budget/crash.ts";
import { measureSafety } from "./budget/safety.ts";
import { runStorm, type Scenario, type Storm } from "./budget/scenario.ts";
import { crashTable, stormTable } from "./budget/tables.ts";
import { machine, writeResult } from "./results.ts";
import { tableOf } from "./table.ts";

const { values } = parseArgs({
  options: { quick: { type: "boolean", default: false }, rounds: { type: "string", default: "3" } },
});

const SCENARIOS: readonly Scenario[] = [
  { name: "clean", faults: false, maxParallel: 512, killsAt: [] },
  { name: "faults", faults: true, maxParallel: 512, killsAt: [] },
  // Narrow, because what is in flight when the gateway dies stays charged at its reservation: a wide storm would end here.
  { name: "restarts", faults: true, maxParallel: 8, killsAt: [0.15, 0.5] },
];

const printed: string[] = [];
const print = (text: string): void => {
  printed.push(text);
  console.log(text);
};

const storms: Storm[] = [];
const run = async (scenario: Scenario): Promise<void> => {
  console.error(`storm: ${scenario.name}`);
  storms.push(await runStorm(scenario));
};
for (const scenario of SCENARIOS.filter(({ killsAt }) => killsAt.length === 0)) await run(scenario);
const [crashed] = values.quick
  ? [null]
  : await Promise.all([crash(), ...SCENARIOS.filter(({ killsAt }) => killsAt.length > 0).map(run)]);
print(`\n1,000 calls at once over one budget: 600 /query, 10 /batch of 40\n\n${tableOf(stormTable(storms))}\n`);
if (crashed !== null) {
  print(
    `60 calls in flight when the gateway is killed, and no request afterwards\n\n${tableOf(crashTable(crashed))}\n`,
  );
}
const rounds = values.quick ? 1 : Number(values.rounds);
const safety = await measureSafety(rounds, (line) => console.error(line));
print(`${safety.title}; ${rounds} round(s)\n\n${tableOf(safety.table)}\n`);

const result = { at: new Date().toISOString(), machine: machine(), storms, crash: crashed, safety };
console.log(`raw figures: ${writeResult("budget.json", JSON.stringify(result, null, 2))}`);
process.exit(printed.some((text) => text.includes("MISSED")) ? 1 : 0);
