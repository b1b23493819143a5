/** The call of a judge as a service: when it is due, what its end means, and when nobody needs it any more. */
import { describe, expect, it } from "vitest";
import type { JudgeRule } from "../../../../src/run/answers/judged-stop.ts";
import { Group } from "../../../../src/run/group/group.ts";
import { JudgedStopRule } from "../../../../src/run/rules/judged-stop.ts";
import { Ledger, NO_LIMITS } from "../../../../src/run/money/ledger.ts";
import { callEnded, callOpened, dueCalls, mayBeServed, needlessCalls } from "../../../../src/run/services/table.ts";
import { EngineState } from "../../../../src/run/state.ts";
import { makeFacts, makeHeader } from "../../../support/engine.ts";

const RULE: JudgeRule = {
  kind: "judge",
  prompt: "Two are enough.",
  model: "m",
  maxTokens: 9,
  charsMax: 2_000,
  every: 1,
  shadow: false,
};
const CALL = { serves: { seq: 4, as: "judge", answers: 1 }, seq: 7, id: "pg-7" } as const;
const ENOUGH = { state: "completed", costNanoUsd: 1, text: '{"enough": true, "reason": "."}' } as const;
/** A restart has found the end of the call. */
const FOUND = { ...ENOUGH, text: null };
const state = new EngineState(
  { ledger: new Ledger(NO_LIMITS), width: 2, windowMs: 50 },
  { random: () => 0, factsOf: () => makeFacts(), targetOf: () => null },
);
const stopOf = ({ rules }: Group) => rules.find(JudgedStopRule)?.judged;
const dueFor = (group: Group) => dueCalls(group, state, 0);

/** A group of two slots, of which the first has answered. */
function answered(rule: Partial<JudgeRule> = {}): Group {
  const group = new Group(makeHeader({ seq: 4, id: "pg-4", count: 2, rules: { judgeWhen: { ...RULE, ...rule } } }));
  group.restore(0, "completed", 1, 0);
  stopOf(group)?.completed({ index: 0, id: null, completed: true, text: "first" });
  return group;
}

describe("the call of a judge", () => {
  it("is due for a new answer, with the model and the cap of the rule, and not while another one is open", () => {
    const group = answered();
    const [due, ...more] = dueFor(group);
    expect([due?.serves, due?.name, more]).toEqual([CALL.serves, "stop pg-4 0", []]);
    const settings = { model: "m", max_tokens: 9, priority: "critical" };
    const prompt: unknown = expect.stringContaining("# Rule\nTwo are enough.");
    expect(due?.call).toMatchObject({ kind: "prompt", prompt, settings });
    callOpened(group, CALL);
    expect(dueFor(group)).toEqual([]);
  });

  it("has another name when it is made again, so that both are opened", () => {
    const group = answered();
    callOpened(group, CALL);
    callEnded(group, CALL, FOUND);
    stopOf(group)?.completed({ index: 1, id: null, completed: true, text: "second" });
    expect(dueFor(group).map(({ name }) => name)).toEqual(["stop pg-4 1"]);
  });

  it("is not due once all calls have begun, unless a stop gives them up or only notes what it saves", () => {
    const begun = (rule: Partial<JudgeRule>) => {
      const group = answered(rule);
      group.restore(1, "running", 1, 0);
      return dueFor(group).length;
    };
    expect([begun({}), begun({ inFlight: "abort" }), begun({ shadow: true })]).toEqual([0, 1, 1]);
  });

  it("stops its group by a verdict that there is enough, and by nothing else", () => {
    const stops = (end: Parameters<typeof callEnded>[2]) => {
      const group = answered();
      callOpened(group, CALL);
      return [callEnded(group, CALL, end), stopOf(group)?.openCallSeq];
    };
    expect(stops(ENOUGH)).toEqual([{ kind: "stop", rule: "judge pg-7" }, null]);
    expect(stops({ ...ENOUGH, text: '{"enough": false}' })).toEqual([null, null]);
    expect(stops({ ...ENOUGH, state: "failed" })).toEqual([null, null]);
    expect(stops(FOUND)).toEqual([null, null]);
  });

  it("is needless once its group has stopped, and its verdict does not stop it again", () => {
    const group = answered();
    callOpened(group, CALL);
    expect(needlessCalls(group)).toEqual([]);
    group.drain({ state: "cancelled", reason: { reason: "cancelled", message: "stop" }, cause: "cancel" });
    expect(needlessCalls(group).map(({ seq }) => seq)).toEqual([7]);
    expect(callEnded(group, CALL, ENOUGH)).toBeNull();
    expect(needlessCalls(group)).toEqual([]);
  });
});

it("a group without a rule for its end is served by nobody", () => {
  const group = new Group(makeHeader({ seq: 4, count: 2 }));
  expect([mayBeServed(group), dueFor(group), needlessCalls(group)]).toEqual([false, [], []]);
});
