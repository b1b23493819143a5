/** Numbers within the bounds of a schema. */
import type { Schema } from "./join.ts";

/** How far an open range reaches from its one bound, or from 0. */
const SPAN = 100;

/** Digits after the point that arithmetic on steps like 0.01 leaves right. */
const DIGITS = 9;

/** `share` in [0, 1) says where in the range the number is. Null = the range is empty. */
export function numberWithin(schema: Schema, { isWhole, share }: { isWhole: boolean; share: number }): number | null {
  const bound = (keyword: string): number | null => {
    const { [keyword]: value } = schema;
    return typeof value === "number" ? value : null;
  };
  const above = bound("exclusiveMinimum");
  const below = bound("exclusiveMaximum");
  const lower = Math.max(bound("minimum") ?? -Infinity, above ?? -Infinity);
  const upper = Math.min(bound("maximum") ?? Infinity, below ?? Infinity);
  const from = lower > -Infinity ? lower : upper < Infinity && upper < SPAN ? upper - SPAN : 0;
  const to = upper < Infinity ? upper : from + SPAN;
  const isAllowed = (value: number): boolean =>
    value >= from && value <= to && (above === null || value > above) && (below === null || value < below);

  const given = bound("multipleOf");
  const step = isWhole ? wholeStep(given ?? 1) : given;
  if (step === null) {
    const rounded = Number((from + share * (to - from)).toFixed(2));
    return [rounded, from + (to - from) / 2].find(isAllowed) ?? null;
  }
  if (step <= 0) return null;
  const first = Math.ceil(from / step);
  const last = Math.floor(to / step);
  const drawn = first + Math.floor(share * (last - first + 1));
  // The ends of the range may be excluded: their neighbours are tried, too.
  const found = [drawn, drawn + 1, drawn - 1, first, last].map((factor) => Number((factor * step).toFixed(DIGITS)));
  return found.find((value) => isAllowed(value) && (!isWhole || Number.isInteger(value))) ?? null;
}

/** The least whole multiple of a step: of 0.5 it is 1, of 1.5 it is 3. The step itself if there is none near. */
function wholeStep(step: number): number {
  for (let factor = 1; factor <= FACTORS_MAX; factor++) {
    if (Number.isInteger(Number((step * factor).toFixed(DIGITS)))) return Math.round(step * factor);
  }
  return step;
}

const FACTORS_MAX = 100;
