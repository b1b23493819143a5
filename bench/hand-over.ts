/**
 * `npm run bench:hand-over` = `node bench/hand-over.ts [--rounds=n] [--seed=text] [--slots=n]`: a client waits for its batch
 * and disconnects in the middle, at another moment in each round. Its Worker completes the calls that it has in flight, and
 * lanes make the rest. Exit status 1 if a guarantee does not hold. README.md explains the figures.
 */
import { parseArgs } from "node:util";
import { startSplice } from "../scripts/local/splice.ts";
import { draw } from "./budget/tariff.ts";
import { handOver, type HandOver } from "./hand-over/round.ts";
import type { RunPlan } from "./kill/plan.ts";
import { startKillWorld } from "./kill/world.ts";
import { machine, writeResult } from "./results.ts";
import { atMost, exact, plain, shownRow } from "./parts/row.ts";
import { median } from "./stats.ts";
import { tableOf } from "./table.ts";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "100" },
    seed: { type: "string", default: "1" },
    slots: { type: "string", default: "1000" },
  },
});
const rounds = Number(values.rounds);
const slots = Number(values.slots);
const WIDTH = 64;
const LATENCY_MS_MAX = 80;
const AT_ONCE = 2;
const RESUME_MS_MAX = 2_000;

const plans = Array.from({ length: rounds }, (_, at): RunPlan => ({
  name: `h${at}`,
  slots,
  maxParallel: WIDTH,
  promptBytes: 60,
  latencyMsMax: LATENCY_MS_MAX,
  client: "leaves",
  leavesAt: draw(values.seed, at, "leaves"),
  onLost: "retry",
  budgetShare: 1,
  postsAfterMs: 0,
}));

await using world = await startKillWorld(plans);
const { hostname, port } = new URL(world.url);
const splice = await startSplice({ host: "127.0.0.1", port: 0 }, () => ({ host: hostname, port: Number(port) }));
const url = `http://127.0.0.1:${splice.port}`;
const done: HandOver[] = [];
const waiting = [...plans];
const work = async (): Promise<void> => {
  for (let plan = waiting.shift(); plan !== undefined; plan = waiting.shift()) {
    done.push(await handOver(world, url, plan));
    if (done.length % 10 === 0) console.error(`${done.length} of ${rounds} rounds`);
  }
};
await Promise.all(Array.from({ length: AT_ONCE }, work));
await splice.close();

const left = done.filter(({ leftAt }) => leftAt !== null);
const pausesMs = left.flatMap(({ pauseMs }) => (pauseMs === null ? [] : [pauseMs]));
const faults = done.flatMap(({ round }) => round.faults.map((fault) => `${round.run}: ${fault}`));
const calls = done.reduce((sum, { round }) => sum + round.calls, 0);
const completed = done.reduce((sum, { round }) => sum + round.completed, 0);
const rows = [
  exact("batches whose client left while they ran", `${left.length} of ${rounds}`, "> 0", left.length > 0),
  exact(
    "slots: each ended once, in its place, with its answer",
    `${completed}`,
    `= ${rounds * slots}`,
    completed === rounds * slots,
  ),
  exact(
    "upstream calls",
    `${calls}`,
    `<= ${rounds * (slots + WIDTH)}, slots + in flight`,
    calls <= rounds * (slots + WIDTH),
  ),
  plain("calls beyond one per slot", `${calls - rounds * slots}`),
  plain("longest time without a call after leaving, median", `${median(pausesMs).toFixed(0)} ms`),
  atMost("the same, at most", Math.max(0, ...pausesMs), RESUME_MS_MAX, " ms"),
  exact("faults", `${faults.length}`, "= 0", faults.length === 0),
];
console.log(`clients that leave in the middle of batches of ${slots}, width ${WIDTH}; seed ${values.seed}\n`);
console.log(`${tableOf(rows.map(shownRow))}\n`);
for (const fault of faults.slice(0, 50)) console.log(fault);
const result = { at: new Date().toISOString(), machine: machine(), seed: values.seed, slots, rows, done };
console.log(`figures: ${writeResult("hand-over.json", JSON.stringify(result, null, 2))}`);
process.exit(rows.some(({ met }) => met === false) ? 1 : 0);
