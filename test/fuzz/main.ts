/**
 * npm run fuzz -- [--seed=1] [--requests=100000] [--from=0] [--only=INDEX,INDEX] [--abreast=16]
 *
 * Sends hostile requests to two gateways; see README.md. Exits with 1 if an invariant does not hold, and prints how to send the
 * request again.
 */
import { parseArgs } from "node:util";
import { campaign, LOOK_EVERY } from "./campaign.ts";

const { values } = parseArgs({
  options: {
    seed: { type: "string", default: "1" },
    requests: { type: "string", default: "100000" },
    from: { type: "string", default: "0" },
    only: { type: "string" },
    abreast: { type: "string", default: "16" },
  },
});

const startedMs = performance.now();
const seed = Number(values.seed);
const from = Number(values.from);
const all = Array.from({ length: Number(values.requests) }, (_, at) => from + at);
const { violations, ...figures } = await campaign({
  seed,
  indexes: values.only?.split(",").map(Number) ?? all,
  abreast: Number(values.abreast),
  progress: (line) => console.error(line),
  found: ({ index, after, what, request, answer }) => {
    const again =
      index === null ? `--from=${Math.max(0, after - LOOK_EVERY)} --requests=${LOOK_EVERY + 1}` : `--only=${index}`;
    console.log(`seed ${seed}, request ${index ?? `before ${after + 1}`} ${what}`);
    console.log(`   again: npm run fuzz -- --seed=${seed} ${again}`);
    if (request !== "") console.log(`   ${JSON.stringify(request)}\n   ${JSON.stringify(answer)}`);
  },
});
const seconds = Math.round((performance.now() - startedMs) / 1_000);
console.log({ seed, ...figures, violations: violations.length, seconds });
if (violations.length > 0) process.exitCode = 1;
