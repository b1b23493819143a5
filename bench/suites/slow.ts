/** `/batch` of 1,024 prompts on an upstream that takes 200 ms, as wall time ÷ what a perfect pool of that width needs. */
import { measureFanOut } from "../fanout.ts";
import type { FanOutVariant } from "../fanout.ts";
import { against } from "../suite.ts";
import type { Suite, SuiteOptions } from "../suite.ts";

const SLOTS = 1_024;
const LATENCY_MS = 200;
const WIDTHS = [64, 256, 512];

/** Wall time of a pool that loses no moment, ms. */
const idealMs = (width: number): number => Math.ceil(SLOTS / width) * LATENCY_MS;

export function slowSuite({ quick, baseline }: SuiteOptions): Suite {
  const variants: FanOutVariant[] = ["bare", "batch"];
  if (baseline !== undefined) variants.push("batch-baseline");
  return {
    name: "slow",
    title: `${SLOTS} slots on an upstream of ${LATENCY_MS} ms, wall ÷ ideal`,
    cells: WIDTHS.flatMap((width) =>
      variants.map((variant) => ({
        variant,
        at: width,
        measure: () => {
          const fanOut = { n: SLOTS, width };
          const repeats = quick || width === 64 ? 1 : 3;
          return measureFanOut({ variant, fanOut, latencyMs: LATENCY_MS, warmUps: 1, repeats, baseline });
        },
      })),
    ),
    table: (of) =>
      WIDTHS.map((width) => {
        const bare = of("bare", width, "wall_ms") / idealMs(width);
        const batch = of("batch", width, "wall_ms") / idealMs(width);
        const row: Record<string, string> = {
          width: String(width),
          "ideal ms": String(idealMs(width)),
          "bare ÷ ideal": bare.toFixed(2),
          "batch ÷ ideal": width < 512 ? against(batch, "<=", width === 64 ? 1.06 : 1.3) : batch.toFixed(2),
          "batch ÷ bare": width < 512 ? (batch / bare).toFixed(2) : against(batch / bare, "<=", 1.3),
          "peak in flight": of("batch", width, "peak").toFixed(0),
        };
        if (baseline !== undefined) {
          row["baseline ÷ ideal"] = (of("batch-baseline", width, "wall_ms") / idealMs(width)).toFixed(2);
        }
        return row;
      }),
  };
}
