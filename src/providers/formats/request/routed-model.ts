/** Model names for which a router does more than call a model. */
import type { UnreservableField } from "../../../call.ts";
import { SPENDS_ALL } from "./field-table.ts";

/** OpenRouter's suffixes and prefix: a web search, the fastest provider at any price, a preset of model, prompt and cap. */
const ROUTED = /:(?:online|nitro)$|@preset\//i;

const ENTRY: UnreservableField = {
  field: "model",
  why: "The name makes a router search the web, choose a dearer provider or apply a preset, which no price covers.",
  spends: SPENDS_ALL,
  allowedBy: "model",
};

/** What the upstream's name of a model spends beyond the model's price; null = nothing. */
export function routedModel(model: string): UnreservableField | null {
  return ROUTED.test(model) ? ENTRY : null;
}
