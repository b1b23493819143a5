/** A run that is wider than its client's Worker may be, where six fetches of an object wait for headers. */
import { expect, it } from "vitest";
import { ROOT } from "../../scripts/root.ts";
import { bundleGateway } from "./bundle.ts";
import { compileGateway } from "./isolate.ts";
import { wideBatch } from "./wide.ts";

/** Calls to objects for each slot: a claim settles one slot and starts the next, and the opening of a large batch is a few. */
const OBJECT_CALLS_PER_SLOT_MAX = 1.5;

it("uses the width of its run from the first call to the last, at a call to an object for each slot", async () => {
  const width = 1_024;
  // Not four times the width: a call that starts a moment late would have the time of a fifth wave to itself.
  const plan = { slots: 3.75 * width, width, known: 64, headersMs: 1_990, wholeMs: 2_000, seed: 1 };
  const outcome = await wideBatch(plan, compileGateway(await bundleGateway(ROOT)));
  expect(outcome.violations).toEqual([]);
  expect(outcome.completed).toBe(plan.slots);
  expect(outcome.inFlightMost).toBe(width);
  expect(outcome.wallMs / outcome.idealMs).toBeLessThan(1.1);
  expect(outcome.objectCalls / plan.slots).toBeLessThan(OBJECT_CALLS_PER_SLOT_MAX);
});
