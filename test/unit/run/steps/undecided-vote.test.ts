/** A group whose status depends on the vote of its answers: `escalated` if it decides nothing, wherever the object dies. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { BallotRule } from "../../../../src/run/answers/ballot.ts";
import { Ledger, NO_LIMITS } from "../../../../src/run/money/ledger.ts";
import type { Outcome } from "../../../../src/call.ts";
import { CallPageBuilder, readFacts } from "../../../../src/run/queue/call-page.ts";
import { cancelGroup } from "../../../../src/run/steps/cancel.ts";
import { expireQueued } from "../../../../src/run/steps/deadline.ts";
import { dispatch } from "../../../../src/run/steps/dispatch.ts";
import { enqueueSlots } from "../../../../src/run/steps/enqueue.ts";
import type { GroupHeader } from "../../../../src/run/group/group.ts";
import { settle } from "../../../../src/run/steps/settle.ts";
import { indexOf } from "../../../../src/run/queue/slot.ts";
import { EngineState, type EngineDeps } from "../../../../src/run/state.ts";
import { failure, makeFacts, makeHeader, makeTarget } from "../../../support/engine.ts";
import { settingsOf } from "../../../support/engine-opening.ts";
import { Rows } from "../../../support/engine-rows.ts";

const TARGET = makeTarget({ attemptsMax: 1 });
const deps: EngineDeps = { random: () => 0, factsOf: () => makeFacts(), targetOf: () => TARGET };
const settings = settingsOf({ limits: { ...NO_LIMITS }, width: 3 } as Parameters<typeof settingsOf>[0]);
const comparison = { by: "normalized" } as const;
const majority: BallotRule = { comparison, rule: "majority" };

const answerOf = (text: string): Outcome => {
  const answer = { text, model: "gpt-x", finishReason: "stop", usage: null, latencyMs: 1 };
  return { kind: "success", ...answer };
};

/** A group of calls with these answers, null = a failure. */
class Played {
  readonly rows = new Rows();
  readonly #answers: readonly (string | null)[];
  #state = new EngineState({ ledger: new Ledger({ ...NO_LIMITS }), width: 3, windowMs: 50 }, deps);

  constructor(answers: readonly (string | null)[], fields: Partial<GroupHeader>) {
    this.#answers = answers;
    const builder = new CallPageBuilder({});
    for (const _ of answers) builder.add({ body: { prompt: "p" }, facts: makeFacts() });
    const page = builder.flush();
    const header = makeHeader({ count: answers.length, models: builder.models, concurrency: 3, ...fields });
    const kept = { openKey: "open 1", detach: true, errorStyle: "bracket", named: false } as const;
    this.rows.putGroup({ header, defaultsJson: "{}", sealed: true, ...kept }, page === null ? [] : [page]);
    const facts = page === null ? [] : readFacts(page.facts, header.models);
    enqueueSlots(this.#state, this.#state.openGroup(header), 0, facts);
  }

  get state(): EngineState {
    return this.#state;
  }

  get group() {
    return this.#state.groups.get(1);
  }

  /** Ends one call. */
  end(nowMs: number): void {
    dispatch(this.#state, new Map([[0, 3]]), nowMs);
    const [first] = [...this.#state.attempts.values()].map(({ lease }) => lease);
    if (first?.slotId == null) throw new Error("the group makes no progress");
    const text = this.#answers[indexOf(first.slotId)] ?? null;
    settle(this.#state, first.attemptId, text === null ? failure("rejected") : answerOf(text), nowMs);
  }

  die(nowMs: number): void {
    this.#state = this.rows.rebuild(settings, { ...deps, targetOfLease: () => TARGET }, nowMs);
  }
}

/** Runs the group; the object dies after each end whose number is in `crashes`. Returns its stored status. */
function statusOf(answers: readonly (string | null)[], ballot: BallotRule, crashes: readonly number[] = []) {
  const played = new Played(answers, { rules: { ballot } });
  for (let ends = 0; played.group !== undefined && !played.group.done; ends++) {
    played.end(ends);
    played.rows.commit(played.state, ends, false);
    if (crashes.includes(ends)) played.die(ends);
  }
  return played.rows.result(1)?.status;
}

describe("a group with a vote that escalates", () => {
  it.each([
    [["a", "A.", "b"], "completed"],
    [["a", "b"], "escalated"],
    [["a", "a", null], "partial"],
    [["a", "b", null], "escalated"],
    [[null, null], "escalated"],
    [["", " "], "escalated"],
  ])("of %j is %s", (answers, status) => {
    expect(statusOf(answers, majority)).toBe(status);
  });

  it("applies the rule's own bound", () => {
    const quorum = (of: number): BallotRule => ({ comparison, rule: "quorum", of, agree: 0.75 });
    expect(statusOf(["a", "a", "a", "b"], quorum(4))).toBe("completed");
    expect(statusOf(["a", "a", "a", "b"], quorum(5))).toBe("escalated");
    expect(statusOf(["a", "a", null], { comparison, rule: "unanimous" })).toBe("escalated");
  });

  it("is cancelled if it is cancelled, and no vote of what has ended by then", () => {
    const played = new Played(["a", "b", "c", "d"], { rules: { ballot: majority }, concurrency: 1 });
    played.end(1);
    cancelGroup(played.state, played.group ?? fail(), { reason: "cancelled", message: "by the test" }, 2);
    played.state.attempts.forEach(({ lease }) => settle(played.state, lease.attemptId, answerOf("b"), 3));
    expect(played.group?.status).toBe("cancelled");
  });

  it("counts calls that its deadline has ended as failed", () => {
    const unanimous: BallotRule = { comparison, rule: "unanimous" };
    const played = new Played(["a", "a"], { rules: { ballot: unanimous }, concurrency: 1, deadlineMs: 100 });
    played.end(1);
    expireQueued(played.state, null, 100);
    expect([played.group?.counts.failed, played.group?.status]).toEqual([1, "escalated"]);
  });

  it("ends alike, wherever the object dies", () => {
    const answers = fc.array(fc.constantFrom("a", "A", "b", "", null), { minLength: 1, maxLength: 10 });
    fc.assert(
      fc.property(answers, fc.array(fc.nat(10), { maxLength: 4 }), (texts, crashes) => {
        expect(statusOf(texts, majority, crashes)).toBe(statusOf(texts, majority));
      }),
    );
  });
});

function fail(): never {
  throw new Error("the group has gone");
}
