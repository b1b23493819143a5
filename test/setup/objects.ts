/**
 * Every test in test/objects runs the gateway under the limits that production has. The files of a runtime share it: each
 * starts at the true time, with an upstream that has seen nothing.
 */
import { beforeAll } from "vitest";
import * as worker from "../../src/index.ts";
import { resetTime } from "../support/objects-clock.ts";
import { resetUpstream } from "../support/objects-run.ts";
import { emulateProductionLimits } from "../support/slots.ts";

emulateProductionLimits(worker);

beforeAll(async () => {
  resetTime();
  await resetUpstream();
});
