/**
 * node test/simulation/wide-main.ts [--slots=40000] [--width=4096] [--known=512] [--headers=300] [--whole=2000] [--seed=1]
 *
 * Simulates one wide batch whose calls all take as long, and prints its wall time in virtual ms and what its calls cost.
 */
import { parseArgs } from "node:util";
import { ROOT } from "../../scripts/root.ts";
import { bundleGateway } from "./bundle.ts";
import { compileGateway } from "./isolate.ts";
import { wideBatch } from "./wide.ts";

const { values } = parseArgs({
  options: {
    slots: { type: "string", default: "40000" },
    width: { type: "string", default: "4096" },
    known: { type: "string", default: "512" },
    headers: { type: "string", default: "300" },
    whole: { type: "string", default: "2000" },
    seed: { type: "string", default: "1" },
  },
});

const slots = Number(values.slots);
const plan = {
  slots,
  width: Number(values.width),
  known: Number(values.known),
  headersMs: Number(values.headers),
  wholeMs: Number(values.whole),
  seed: Number(values.seed),
};
const outcome = await wideBatch(plan, compileGateway(await bundleGateway(ROOT)));
const { user, system } = process.cpuUsage();
console.log({
  ...outcome,
  ofIdeal: outcome.wallMs / outcome.idealMs,
  objectCallsPerSlot: outcome.objectCalls / slots,
  cpuSeconds: (user + system) / 1e6,
  megabytes: process.memoryUsage.rss() / 2 ** 20,
});
if (outcome.violations.length > 0) process.exitCode = 1;
