/** What the bars of the timeline are coloured by, if not by the state of their calls. */
import type { Call } from "../../src/log/picture/call.ts";
import { durationText, exactUsdText } from "../model/format.ts";
import type { RunState } from "../model/run-state.ts";

export type ColouredBy = "state" | "model" | "cost" | "latency";

/** The colour of an attempt of a call at a model; null = that of the call's state. */
export type ColourOf = (call: Call, target: string) => string | null;

/** What a colour means, in the order of a legend. */
export type Legend = readonly { colour: string; text: string }[];

/** Colours that readers can distinguish on light and dark backgrounds, even with weak colour vision. */
const MODEL_COLOURS = ["#4e79a7", "#f28e2b", "#59a14f", "#b07aa1", "#76b7b2", "#edc948", "#9c755f", "#bab0ac"];
/** From the least to the most, each for a fifth of the calls. Red is for failures only. */
const QUANTILE_COLOURS = ["#b9d4ea", "#85b4dc", "#4f8fc7", "#2a679f", "#6b3f94"];
/** Calls that the quantiles are computed of: as many tell as much. */
const SAMPLE_MAX = 2_000;

/** Null, an empty legend: by state. */
export function colouring(
  by: ColouredBy,
  { models, calls }: Pick<RunState, "models" | "calls">,
): { colourOf: ColourOf | null; legend: Legend } {
  switch (by) {
    case "state":
      return { colourOf: null, legend: [] };
    case "model":
      return byModel([...models]);
    case "cost":
      return byQuantile(calls, ({ costUsd }) => costUsd, exactUsdText);
    case "latency":
      return byQuantile(calls, ({ latencyMs }) => latencyMs, durationText);
  }
}

function byModel(models: readonly string[]): { colourOf: ColourOf; legend: Legend } {
  const others = MODEL_COLOURS.at(-1) ?? "";
  const own = MODEL_COLOURS.slice(0, -1);
  const known = new Map(models.slice(0, own.length).map((model, at) => [model, own[at] ?? others]));
  const legend = [...known].map(([text, colour]) => ({ colour, text }));
  const left = models.length - known.size;
  const rest = left > 0 ? [{ colour: others, text: `${left} others` }] : [];
  return { colourOf: (_, target) => known.get(target) ?? others, legend: [...legend, ...rest] };
}

function byQuantile(
  calls: readonly Call[],
  amountOf: (call: Call) => number,
  text: (amount: number) => string,
): { colourOf: ColourOf; legend: Legend } {
  const step = Math.ceil(calls.length / SAMPLE_MAX) || 1;
  const amounts = calls
    .flatMap((call, at) => (at % step === 0 && call.endMs !== null ? [amountOf(call)] : []))
    .sort((a, b) => a - b);
  // Equal bounds are one colour: all calls may cost the same.
  const bounds = QUANTILE_COLOURS.map((colour, at) => ({
    colour,
    upTo: amounts[Math.ceil(((at + 1) / QUANTILE_COLOURS.length) * amounts.length) - 1] ?? 0,
  })).filter(({ upTo }, at, all) => upTo !== all[at + 1]?.upTo);
  const last = bounds.at(-1);
  const colourOf = (call: Call): string | null =>
    call.endMs === null || call.state === "failed"
      ? null
      : ((bounds.find(({ upTo }) => amountOf(call) <= upTo) ?? last)?.colour ?? null);
  return {
    colourOf,
    legend: amounts.length === 0 ? [] : bounds.map(({ colour, upTo }) => ({ colour, text: `up to ${text(upTo)}` })),
  };
}
