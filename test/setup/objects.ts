/**
 * Every test in test/objects runs the gateway under the limits that production has. The files of a runtime share it: each
 * starts at the true time, with an upstream that has seen nothing. Each test starts with gates that know nothing: a gate is
 * shared by all runs, so that what one test has an upstream do would make the calls of others wait.
 */
import { beforeAll, beforeEach } from "vitest";
import * as worker from "../../src/index.ts";
import { resetTime } from "../support/objects-clock.ts";
import { resetGates } from "../support/objects-gates.ts";
import { resetUpstream } from "../support/objects-run.ts";
import { emulateProductionLimits } from "../support/slots.ts";

emulateProductionLimits(worker);

beforeAll(async () => {
  resetTime();
  await resetUpstream();
});

beforeEach(resetGates);
