/**
 * `npm run bench:kill` = `node bench/kill.ts [--rounds=n] [--seed=text] [--slots=n] [--executor=lanes|workflow]`: is nothing
 * lost when the gateway is killed? Volleys of batches, one SIGKILL for all batches of a volley, until so many batches have been
 * hit. Prints the result of each guarantee and writes the figures to bench/results. Exit status 1 if a guarantee does not hold.
 * README.md explains the figures.
 */
import { parseArgs } from "node:util";
import { z } from "zod";
import type { Round } from "./kill/audit.ts";
import { planVolley } from "./kill/plan.ts";
import { summaryOf, summaryTable } from "./kill/tables.ts";
import { runVolley } from "./kill/volley.ts";
import { machine, writeResult } from "./results.ts";
import { tableOf } from "./table.ts";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "100" },
    seed: { type: "string", default: "1" },
    slots: { type: "string", default: "2000" },
    executor: { type: "string", default: "all" },
  },
});
const executors = z.enum(["all", "lanes", "workflow"]).parse(values.executor);
const wanted = Number(values.rounds);
const slots = Number(values.slots);
/** Batches that share a gateway and its kills. */
const RUNS_PER_VOLLEY = 10;
/** Volleys at once, each with its own gateway: most of a volley is waiting for leases to end. */
const VOLLEYS_AT_ONCE = 2;

const startedMs = performance.now();
const rounds: Round[] = [];
let volleys = 0;

async function fire(): Promise<void> {
  while (rounds.length < wanted) {
    const number = ++volleys;
    const executor = executors === "all" ? (number % 2 === 0 ? "workflow" : "lanes") : executors;
    const plan = planVolley(values.seed, number, { runs: Math.min(RUNS_PER_VOLLEY, wanted), slots, executor });
    const hit = await runVolley(plan);
    rounds.push(...hit);
    for (const { run, client, faults } of hit)
      for (const fault of faults) console.error(`${run} (${client}): ${fault}`);
    const faults = hit.reduce((sum, round) => sum + round.faults.length, 0);
    console.error(
      `volley ${number} (${executor}): ${hit.length} rounds, ${faults} faults; ${rounds.length} of ${wanted} rounds`,
    );
  }
}

await Promise.all(Array.from({ length: wanted > RUNS_PER_VOLLEY ? VOLLEYS_AT_ONCE : 1 }, fire));
const seconds = Math.round((performance.now() - startedMs) / 1_000);
const summary = summaryOf(rounds);
console.log(
  `SIGKILL at random moments of batches of ${slots}; seed ${values.seed}, ${volleys} volleys, ${seconds} s\n`,
);
const table = tableOf(summaryTable(summary));
console.log(`${table}\n`);
for (const slow of summary.slowest) console.log(`slow: ${JSON.stringify(slow)}`);
for (const { run, fault } of summary.faults.slice(0, 50)) console.log(`${run}: ${fault}`);
const result = {
  at: new Date().toISOString(),
  machine: machine(),
  seed: values.seed,
  slots,
  volleys,
  seconds,
  summary,
};
console.log(`figures: ${writeResult("kill.json", JSON.stringify(result, null, 2))}`);
process.exit(table.includes("MISSED") ? 1 : 0);
