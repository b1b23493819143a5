/** The rules of a group together: what its row keeps of a request, what a retry takes over, and who is told of what. */
import { describe, expect, it } from "vitest";
import type { EndedSlot, RuledGroup } from "../../../../src/run/rules/rule.ts";
import { JudgedStopRule } from "../../../../src/run/rules/judged-stop.ts";
import { TiersRule } from "../../../../src/run/rules/tiers.ts";
import {
  GroupRules,
  rulesOfRequest,
  rulesOfRetry,
  stoppingOf,
  type RequestedRules,
  type StoredRules,
} from "../../../../src/run/rules/table.ts";

const STOP = { kind: "n_success", n: 2, shadow: false } as const;
const JUDGE = {
  kind: "judge",
  prompt: "?",
  model: null,
  maxTokens: null,
  charsMax: 2_000,
  every: 1,
  shadow: true,
} as const;
const VOTE = { comparison: { by: "exact" }, rule: "majority" } as const;
const REASON = { reason: "cancelled", message: "by the test" } as const;

/** A group of four slots in these states, as its rules see it. */
function view(states: readonly EndedSlot["state"][] = [], more: Partial<RuledGroup> = {}): RuledGroup {
  const counts = { queued: 0, running: 0, completed: 0, failed: 0, skipped: 0, cancelled: 0 };
  for (const state of states) counts[state] += 1;
  const isThere = () => true;
  const stateOf = (index: number) => states[index] ?? "queued";
  return {
    header: { count: 4 },
    counts,
    done: false,
    hasStopped: false,
    graph: null,
    stateOf,
    isWanted: isThere,
    ...more,
  };
}

const FAILED = { index: 1, reason: REASON };

const rules = (stored: StoredRules, group = view()) => new GroupRules(stored, group);
const slot = (id: number, text: string | null): EndedSlot => ({
  id,
  state: text === null ? "failed" : "completed",
  reason: text === null ? REASON : null,
  text,
});

describe("what the row of a group keeps", () => {
  it("is nothing of a request without rules, and each rule that is asked for under its name", () => {
    expect(rulesOfRequest({ onError: "continue" })).toEqual({});
    const aggregate = { strategy: "vote", escalatesGroup: true, ...VOTE } as const;
    const request: RequestedRules = { onError: "abort", stopWhen: STOP, tiers: "strict", atLeast: 0.5, aggregate };
    const stored = { onError: "abort", stopWhen: STOP, tiers: "strict", atLeast: 0.5, ballot: VOTE };
    expect(rulesOfRequest(request)).toEqual({ rules: stored });
    expect(rulesOfRequest({ onError: "continue", judgeWhen: JUDGE })).toEqual({ rules: { judgeWhen: JUDGE } });
  });

  it("has no vote that decides nothing for the group", () => {
    expect(rulesOfRequest({ onError: "continue", aggregate: { strategy: "vote", ...VOTE } })).toEqual({});
  });

  it("goes to a retry, without the early stop: whoever retries wants the calls that were cancelled", () => {
    const kept: StoredRules = { onError: "abort", tiers: "priority", atLeast: 0.5, ballot: VOTE };
    expect(rulesOfRetry({ ...kept, stopWhen: STOP })).toEqual({ rules: kept });
    expect(rulesOfRetry({ judgeWhen: JUDGE })).toEqual({});
    expect(rulesOfRetry(undefined)).toEqual({});
  });
});

describe("the rules of a group", () => {
  it("are none for a group that asks for none: any width, no effect, no verdict", () => {
    const none = new GroupRules(undefined, view());
    expect([none.areAny, none.width, none.mayStop, none.remembersEnds, none.shown]).toEqual([
      false,
      Infinity,
      false,
      false,
      {},
    ]);
    expect([...none.slotEnded(slot(0, "a")), ...none.slotsFailed([FAILED])]).toEqual([]);
  });

  it("are all told of an end before one of them stops the group", () => {
    const both = rules({ stopWhen: { ...STOP, n: 1 }, ballot: { ...VOTE, rule: "unanimous" } });
    expect(both.slotEnded(slot(0, "a"))).toEqual([{ kind: "stop", rule: "n_success 1" }]);
    const ending = { isComplete: true, isCancelled: false, answered: 1, expected: 1 };
    expect(both.verdict(ending)).toBeNull();
    expect(both.slotEnded(slot(1, null))).toEqual([]);
    expect(both.verdict(ending)).toBe("undecided");
  });

  it("note nothing for an early stop that is over, and are told of no earlier end then", () => {
    const over = rules({ stopWhen: { ...STOP, n: 1 } }, view([], { hasStopped: true }));
    expect([over.slotEnded(slot(0, "a")), over.remembersEnds]).toEqual([[], false]);
    expect(rules({ stopWhen: STOP }).remembersEnds).toBe(true);
    expect(rules({ atLeast: 0.5, tiers: "strict", onError: "abort" }).remembersEnds).toBe(false);
  });

  it("look for calls that serve the group after an answer that a judge may see", () => {
    const judged = rules({ judgeWhen: JUDGE });
    expect(judged.slotEnded(slot(0, null))).toEqual([]);
    expect(judged.slotEnded(slot(1, "a"))).toEqual([{ kind: "served" }]);
    expect(judged.find(JudgedStopRule)?.judged.answers).toBe(1);
    expect(rules({ stopWhen: STOP }).find(JudgedStopRule)).toBeNull();
  });

  it("keep a group narrow near its end by the early stop alone", () => {
    expect(rules({ stopWhen: STOP, atLeast: 0.5 }).width).toBe(2);
    expect(rules({ stopWhen: { ...STOP, hurry: true } }).width).toBe(Infinity);
    expect(rules({ stopWhen: STOP }, view(["failed", "completed"])).width).toBe(4);
  });

  it("stop the group after a failure only if it is to be aborted", () => {
    const message = 'an earlier slot failed and on_error is "abort"';
    expect(rules({ onError: "abort", atLeast: 0.5 }).slotsFailed([FAILED])).toEqual([{ kind: "abort", message }]);
    expect(rules({ atLeast: 0.5 }).slotsFailed([FAILED])).toEqual([]);
  });

  it("report a failed call of the most important tier, and no other one, before the group stops for it", () => {
    const strict = rules({ tiers: "strict", onError: "abort" });
    strict.find(TiersRule)?.tiers.set(0, 1);
    strict.find(TiersRule)?.tiers.set(1, 0);
    const kinds = (index: number) => strict.slotsFailed([{ ...FAILED, index }]).map(({ kind }) => kind);
    expect([kinds(0), kinds(1)]).toEqual([["abort"], ["escalated", "abort"]]);
    expect(strict.slotsFailed([FAILED])[0]).toEqual({ kind: "escalated", ...FAILED });
  });

  it("decide the end in their order: a vote before a share of the slots, and neither of what was cancelled", () => {
    const ending = { isComplete: false, isCancelled: false, answered: 2, expected: 4 };
    const share = rules({ atLeast: 0.5 });
    expect([share.verdict(ending), share.verdict({ ...ending, answered: 1 })]).toEqual(["completed", null]);
    const undecided = rules({ atLeast: 0.5, ballot: VOTE });
    expect(undecided.verdict(ending)).toBe("undecided");
    expect(undecided.verdict({ ...ending, isCancelled: true })).toBeNull();
  });
});

it("a group stops early by its rule or by its judge, as that says", () => {
  expect(stoppingOf({ stopWhen: { ...STOP, inFlight: "abort" } })).toMatchObject({ shadow: false, inFlight: "abort" });
  expect(stoppingOf({ judgeWhen: JUDGE })).toMatchObject({ shadow: true });
  expect([stoppingOf({ tiers: "strict" }), stoppingOf(undefined)]).toEqual([null, null]);
});
