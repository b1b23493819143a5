/** `/batch` of 1,000 prompts on an instant upstream, as a share of what a bare Worker fetches in the same time. */
import { measureFanOut } from "../fanout.ts";
import type { FanOutVariant } from "../fanout.ts";
import { against } from "../suite.ts";
import type { Suite, SuiteOptions } from "../suite.ts";

const SLOTS = 1_000;
const WIDTHS = [8, 48, 192, 512];

/** The least share of the ceiling that is good enough at a width. */
const shareMin = (width: number): number => (width >= 48 ? 0.45 : 0.25);

export function batchSuite({ quick, baseline }: SuiteOptions): Suite {
  const variants: FanOutVariant[] = quick ? ["bare", "batch"] : ["direct", "bare", "batch", "batch-new-run"];
  if (baseline !== undefined) variants.push("batch-baseline");
  const effort = quick ? { warmUps: 2, repeats: 3 } : { warmUps: 3, repeats: 5 };
  return {
    name: "batch",
    title: `${SLOTS} slots on an instant upstream, sub-calls per second and share of the ceiling (bare)`,
    cells: WIDTHS.flatMap((width) =>
      variants.map((variant) => ({
        variant,
        at: width,
        measure: () => measureFanOut({ variant, fanOut: { n: SLOTS, width }, latencyMs: 0, baseline, ...effort }),
      })),
    ),
    table: (of) =>
      WIDTHS.map((width) => {
        const perS = (variant: FanOutVariant) => of(variant, width, "calls_per_s");
        const row: Record<string, string> = { width: String(width) };
        for (const variant of variants) row[variant] = perS(variant).toFixed(0);
        row["batch ÷ bare"] = against(perS("batch") / perS("bare"), ">=", shareMin(width));
        if (!quick) row["batch-new-run ÷ bare"] = (perS("batch-new-run") / perS("bare")).toFixed(2);
        if (baseline !== undefined) row["batch ÷ baseline"] = (perS("batch") / perS("batch-baseline")).toFixed(2);
        return row;
      }),
  };
}
