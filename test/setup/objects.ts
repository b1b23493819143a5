/**
 * Every test in test/objects runs the gateway under the limits that production has. The files of a runtime share it: each
 * starts at the true time, without objects of earlier files, with an upstream that has seen nothing, and puts back what it replaces. Each
 * test starts with gates that know nothing: a gate is shared by all runs, so that what one test has an upstream do would make the calls
 * of others wait.
 */
import { reset } from "cloudflare:test";
import { afterAll, beforeAll, beforeEach, expect } from "vitest";
import * as worker from "../../src/index.ts";
import { resetTime } from "../support/objects-clock.ts";
import { resetGates } from "../support/objects-gates.ts";
import { watchReplaced } from "../support/objects-replaced.ts";
import { resetUpstream } from "../support/objects-run.ts";
import { emulateProductionLimits } from "../support/slots.ts";

emulateProductionLimits(worker);

let replaced = (): string[] => [];

beforeAll(async () => {
  resetTime();
  await reset();
  await resetUpstream();
  replaced = watchReplaced(worker);
});

beforeEach(resetGates);

afterAll(() => {
  expect(replaced(), "what this file has replaced and not put back").toEqual([]);
});
