/**
 * `node bench/narrow.ts [--calls=2000] [--usd=0.004]`: how long a batch of short prompts under a small budget takes without `max_tokens`,
 * against the same batch with `max_tokens: 20`, on a simulated model that takes half a second; and what the reply says of it. Exit
 * status 1 if it takes more than twice as long, or calls fail.
 */
import { parseArgs } from "node:util";
import { z } from "zod";
import { startGateway } from "../test/support/gateway.ts";

const { values } = parseArgs({ options: { calls: { type: "string" }, usd: { type: "string" } } });
const calls = Number(values.calls ?? 2_000);
const usd = Number(values.usd ?? 0.004);
const FACTOR_MAX = 2;

const reply = z.looseObject({
  counts: z.record(z.string(), z.number()),
  metrics: z.looseObject({ wall_ms: z.number(), peak_parallel: z.number(), narrowed_by: z.unknown().optional() }),
});

const gateway = await startGateway();
async function batch(settings: object): Promise<z.infer<typeof reply>> {
  const { token } = await gateway.openRun({ budget: { usd }, max_parallel: 64, default_model: "sim/slow?ms=500" });
  const prompts = Array.from({ length: calls }, () => "y");
  const answer = await gateway.fetch("/batch", { token, json: { prompts, ...settings } });
  return reply.parse(await answer.json());
}

const capped = await batch({ max_tokens: 20 });
const plain = await batch({});
await gateway.stop();
const factor = plain.metrics.wall_ms / capped.metrics.wall_ms;
for (const [name, { counts, metrics }] of Object.entries({ "max_tokens: 20": capped, "no max_tokens": plain })) {
  console.log(`${name}: ${(metrics.wall_ms / 1_000).toFixed(1)} s, ${counts["completed"]} of ${calls} completed`);
  console.log(`  narrowed_by: ${JSON.stringify(metrics.narrowed_by ?? null)}`);
}
console.log(`${factor.toFixed(2)} times the wall, <= ${FACTOR_MAX}`);
process.exit(factor <= FACTOR_MAX && [capped, plain].every(({ counts }) => counts["completed"] === calls) ? 0 : 1);
