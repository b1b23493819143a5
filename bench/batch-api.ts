/**
 * `npm run bench:batch-api` = `node bench/batch-api.ts [--quick] [size] [faults] [restarts] [fairness]`: batches of the
 * OpenAI surface at their largest, before an upstream that turns calls away, on a gateway that is killed, and beside calls
 * of people. Prints each result and writes the rows to bench/results. Exit status 1 if a result is not exact.
 * README.md explains the figures.
 */
import { parseArgs } from "node:util";
import { measureFairness } from "./batch-api/fairness.ts";
import { measureFaults } from "./batch-api/faults.ts";
import { measureRestarts } from "./batch-api/restarts.ts";
import { runParts } from "./parts/parts.ts";
import type { Part } from "./parts/row.ts";
import { measureSize } from "./batch-api/size.ts";

const { values, positionals } = parseArgs({
  options: { quick: { type: "boolean", default: false } },
  allowPositionals: true,
});
const { quick } = values;
const report = (text: string) => console.error(text);

const LINE_BYTES = 2_000;
const parts: Record<string, () => Promise<Part>> = {
  size: () =>
    measureSize(
      quick
        ? { lines: 3_000, lineBytes: LINE_BYTES, smaller: [{ lines: 500, repeats: 2 }] }
        : {
            lines: 50_000,
            lineBytes: LINE_BYTES,
            smaller: [
              { lines: 1_000, repeats: 5 },
              { lines: 10_000, repeats: 1 },
            ],
          },
      report,
    ),
  faults: () => measureFaults(quick ? 300 : 5_000, report),
  restarts: () =>
    measureRestarts(
      quick ? { lines: 600, kills: 2, maxParallel: 64 } : { lines: 5_000, kills: 10, maxParallel: 64 },
      report,
    ),
  fairness: () => measureFairness(quick ? { lines: 1_500, queries: 10 } : { lines: 10_000, queries: 100 }, report),
};

await runParts(parts, { only: positionals, file: "batch-api.json", more: () => ({ quick }) });
process.exit();
