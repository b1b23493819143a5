/** What a run remembers of attempts whose end their Workers have not reported. */
import { expect, it } from "vitest";
import { UnreportedEnds } from "../../../../src/run/leases/settled.ts";
import { LOST } from "../../../../src/run/gates/retry.ts";
import { UNREPORTED_ENDS_KEPT } from "../../../../src/limits.ts";
import { failure } from "../../../support/engine.ts";

const charge = { usd: 1, calls: 1, prompt_tokens: 2, completion_tokens: 3, new_tokens: 5 };
const settled = { retryInMs: 5, uncounted: 0, charge, estimated: true, queuedMs: 0, parallelGroupId: null };

it("forgets the oldest of more attempts than it keeps, and knows no others", () => {
  const ends = new UnreportedEnds();
  for (let at = 0; at < UNREPORTED_ENDS_KEPT; at += 1) ends.add(`${at}`, { settled, reason: LOST });
  const knows = (attemptId: string): boolean => ends.endOf(attemptId, failure("unknown")) !== null;
  expect(["0", "1", "other"].map(knows)).toEqual([true, true, false]);
  ends.add("more", { settled, reason: LOST });
  expect(["0", "1", "more"].map(knows)).toEqual([false, true, true]);
});
