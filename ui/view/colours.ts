/** What the bars of the timeline are coloured by, if not by the state of their calls. */
import type { Call } from "../model/call.ts";
import { exactUsdText } from "../model/format.ts";
import type { RunState } from "../model/run-state.ts";

export type ColouredBy = "state" | "model" | "cost";

/** The colour of an attempt of a call at a model; null = that of the call's state. */
export type ColourOf = (call: Call, target: string) => string | null;

/** What a colour means, in the order of a legend. */
export type Legend = readonly { colour: string; text: string }[];

/** Colours that readers can distinguish on light and dark backgrounds, even with weak colour vision. */
const MODEL_COLOURS = ["#4e79a7", "#f28e2b", "#59a14f", "#b07aa1", "#76b7b2", "#e15759", "#9c755f", "#bab0ac"];
/** From cheap to dear. */
const COST_COLOURS = ["#9ecae1", "#6baed6", "#4292c6", "#c77f2d", "#c4362c"];

/** Null, an empty legend: by state. */
export function colouring(
  by: ColouredBy,
  { models, dearestUsd }: RunState,
): { colourOf: ColourOf | null; legend: Legend } {
  switch (by) {
    case "state":
      return { colourOf: null, legend: [] };
    case "model":
      return byModel([...models]);
    case "cost":
      return byCost(dearestUsd);
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

function byCost(dearestUsd: number): { colourOf: ColourOf; legend: Legend } {
  const step = dearestUsd / COST_COLOURS.length;
  const legend = COST_COLOURS.map((colour, at) => ({ colour, text: `up to ${exactUsdText(step * (at + 1))}` }));
  const colourOf = ({ endMs, costUsd }: Call): string | null => {
    if (endMs === null || dearestUsd === 0) return null;
    return COST_COLOURS[Math.min(COST_COLOURS.length - 1, Math.floor(costUsd / step))] ?? null;
  };
  return { colourOf, legend: dearestUsd === 0 ? [] : legend };
}
