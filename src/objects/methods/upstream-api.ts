/** The methods of an upstream object: what all runs have learned of one upstream's prompt templates. */
import type { TemplateRow } from "../../run/learned/templates.ts";

export interface UpstreamApi extends Rpc.DurableObjectBranded {
  /** Everything that is known of its templates. */
  templates(): TemplateRow[];

  /** Adds what a run has observed; known facts write nothing. Returns all that is known then. */
  learn(seen: readonly TemplateRow[]): TemplateRow[];
}
