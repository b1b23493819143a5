/** What executors know of the models of tests. */
import { isolatePaces } from "../../src/executors/paces.ts";
import { CALL_MS_ASSUMED } from "../../src/limits.ts";

/**
 * Lets executors know that the headers of a model come late, as its first answer shows them in production. Calls at a latch have
 * none: without this, executors take 2.5 s until they know that others must join them. Returns the model.
 */
export function late(model: string): string {
  isolatePaces.headersArrived(model, CALL_MS_ASSUMED);
  return model;
}
