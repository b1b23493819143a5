/**
 * Totals as they are stored. A row has all of a shard's totals and is written with every call that ends, which changes a few numbers
 * of them: what belongs to models, gates and durations that it does not touch keeps its text.
 */
import { durationsText } from "./percentiles.ts";
import type { ModelTotals, ShardMeter, Totals } from "./totals.ts";

const modelTexts = new WeakMap<ModelTotals, { of: ModelTotals; text: string }>();
const meterTexts = new WeakMap<ShardMeter, { of: Pick<ShardMeter, "number" | "isOwed">; text: string }>();

/** The same JSON as JSON.stringify makes of totals, but for the order of their fields. */
export function totalsText({ times, models, metered, ...sums }: Totals): string {
  let text = `${JSON.stringify(sums).slice(0, -1)},"models":${recordText(models, modelText)}`;
  if (times !== undefined)
    text += `,"times":{"latency":${durationsText(times.latency)},"queued":${durationsText(times.queued)}}`;
  if (metered !== undefined) text += `,"metered":${recordText(metered, meterText)}`;
  return `${text}}`;
}

function recordText<Value>(record: Record<string, Value>, textOf: (value: Value) => string): string {
  let text = "";
  for (const [name, value] of Object.entries(record))
    text += `${text === "" ? "" : ","}${JSON.stringify(name)}:${textOf(value)}`;
  return `{${text}}`;
}

function modelText(model: ModelTotals): string {
  const known = modelTexts.get(model);
  if (known !== undefined && isEqual(known.of, model)) return known.text;
  const text = JSON.stringify(model);
  modelTexts.set(model, { of: { ...model }, text });
  return text;
}

function isEqual(a: ModelTotals, b: ModelTotals): boolean {
  const isSameWork = a.calls === b.calls && a.costNanoUsd === b.costNanoUsd;
  return isSameWork && a.promptTokens === b.promptTokens && a.completionTokens === b.completionTokens;
}

/** A sheet changes only with the number of its meter. */
function meterText(meter: ShardMeter): string {
  const { number, isOwed } = meter;
  const known = meterTexts.get(meter);
  if (known !== undefined && known.of.number === number && known.of.isOwed === isOwed) return known.text;
  const text = JSON.stringify(meter);
  meterTexts.set(meter, { of: { number, ...(isOwed === undefined ? {} : { isOwed }) }, text });
  return text;
}
