/** The verdict of a judge in the engine: what it stops, and what a restart knows of it. */
import { describe, expect, it } from "vitest";
import type { JudgedStop, JudgeRule } from "../../../../src/run/answers/judged-stop.ts";
import { Ledger, NO_LIMITS } from "../../../../src/run/money/ledger.ts";
import type { Outcome } from "../../../../src/call.ts";
import { CallPageBuilder, readFacts } from "../../../../src/run/queue/call-page.ts";
import { giveUpStopped } from "../../../../src/run/steps/stopping.ts";
import { dispatch } from "../../../../src/run/steps/dispatch.ts";
import { enqueueSlots } from "../../../../src/run/steps/enqueue.ts";
import type { Group, GroupHeader } from "../../../../src/run/group/group.ts";
import { workerOf } from "../../../../src/run/leases/shard.ts";
import { JudgedStopRule } from "../../../../src/run/rules/judged-stop.ts";
import { settle } from "../../../../src/run/steps/settle.ts";
import { slotIdOf } from "../../../../src/run/queue/slot.ts";
import { EngineState, type EngineDeps } from "../../../../src/run/state.ts";
import { failure, makeFacts, makeHeader, makeTarget } from "../../../support/engine.ts";
import { settingsOf } from "../../../support/engine-opening.ts";
import { Rows } from "../../../support/engine-rows.ts";

const RULE: JudgeRule = {
  kind: "judge",
  prompt: "?",
  model: null,
  maxTokens: null,
  charsMax: 2_000,
  every: 1,
  shadow: false,
};
const TARGET = makeTarget({ attemptsMax: 1 });
const deps: EngineDeps = { random: () => 0, factsOf: () => makeFacts(), targetOf: () => TARGET };
const settings = settingsOf({ limits: { ...NO_LIMITS }, width: 3 } as Parameters<typeof settingsOf>[0]);
const answer = (text: string): Outcome => ({
  kind: "success",
  text,
  model: "gpt-x",
  finishReason: "stop",
  usage: null,
  latencyMs: 1,
});
const ENOUGH = '{"enough": true, "reason": "."}';
const NOT_YET = '{"enough": false, "reason": "."}';

/** A group of 10 slots of which the first has ended, with the call of its judge in flight. */
class Judged {
  readonly #rows = new Rows();
  state = new EngineState({ ledger: new Ledger({ ...NO_LIMITS }), width: 3, windowMs: 50 }, deps);

  constructor(rule: JudgeRule = RULE) {
    this.#open(makeHeader({ seq: 1, count: 10, concurrency: 2, rules: { judgeWhen: rule } }));
    this.start();
    this.end(1, 0, answer("first"));
    this.ask(2);
  }

  get stop(): JudgedStop | undefined {
    return this.group.rules.find(JudgedStopRule)?.judged;
  }

  get group(): Group {
    const group = this.state.groups.get(1);
    if (group === undefined) throw new Error("the group is gone");
    return group;
  }

  ask(seq: number): void {
    const answers = this.stop?.answers ?? 0;
    this.#open(makeHeader({ seq, id: `pg-${seq}`, count: 1, serves: { seq: 1, as: "judge", answers } }));
    this.stop?.callOpened({ seq, id: `pg-${seq}`, answers });
    this.start();
  }

  start(): void {
    dispatch(this.state, new Map([[0, 10]]), 0);
    this.#rows.commit(this.state, 0, false);
  }

  end(seq: number, index: number, outcome: Outcome): void {
    settle(this.state, `${slotIdOf(seq, index)}.1`, outcome, 5);
    giveUpStopped(this.state, 5);
    this.#rows.commit(this.state, 5, false);
  }

  crash(): void {
    this.state = this.#rows.rebuild(settings, { ...deps, targetOfLease: () => TARGET }, 10);
  }

  #open(header: GroupHeader): void {
    const builder = new CallPageBuilder({});
    for (let index = 0; index < header.count; index++) builder.add({ body: { prompt: "p" }, facts: makeFacts() });
    const page = builder.flush();
    if (page === null) throw new Error("no calls");
    const stored = { header: { ...header, models: builder.models }, defaultsJson: "{}", sealed: true };
    const kept = { openKey: `open ${header.seq}`, detach: true, errorStyle: "bracket", named: false } as const;
    this.#rows.putGroup({ ...stored, ...kept }, [page]);
    enqueueSlots(this.state, this.state.openGroup(stored.header), 0, readFacts(page.facts, builder.models));
  }
}

describe("the verdict of a judge", () => {
  it("that there is enough stops the group with the end of its call", () => {
    const judged = new Judged();
    judged.end(2, 0, answer(ENOUGH));
    const { drained, saved, counts, status } = judged.group;
    expect(drained).toMatchObject({ cause: "stop", reason: { message: "stop_when was met: judge pg-2" } });
    expect([saved?.calls, saved?.aborted]).toEqual([7, 2]);
    expect([status, counts.completed, counts.cancelled]).toEqual(["completed", 1, 9]);
  });

  it("in shadow mode is noted, and stops nothing", () => {
    const judged = new Judged({ ...RULE, shadow: true });
    judged.end(2, 0, answer(ENOUGH));
    expect([judged.group.drained, judged.group.saved?.calls]).toEqual([null, 7]);
  });

  it.each([
    ["that there is not", answer(NOT_YET)],
    ["that cannot be read", answer("Yes!")],
    ["that failed", failure("rejected")],
  ])("%s lets the group go on, and another be asked for after the next answer", (_, outcome) => {
    const judged = new Judged();
    judged.end(2, 0, outcome);
    expect([judged.group.drained, judged.stop?.isDue]).toEqual([null, false]);
    judged.end(1, 1, answer("second"));
    expect(judged.stop?.isDue).toBe(true);
    expect([...judged.state.takeServed()]).toEqual([judged.group]);
  });
});

describe("after a restart", () => {
  it("the call of a judge in flight is awaited, and no other asked for", () => {
    const judged = new Judged();
    judged.crash();
    expect([judged.stop?.openCallSeq, judged.stop?.isDue]).toEqual([2, false]);
    judged.end(2, 0, answer(ENOUGH));
    expect(judged.group.saved?.calls).toBe(7);
  });

  it("a verdict is not asked for twice, and the next one is due by the next answer", () => {
    const judged = new Judged();
    judged.end(2, 0, answer(NOT_YET));
    judged.crash();
    expect([judged.stop?.isDue, judged.stop?.groups]).toEqual([false, ["pg-2"]]);
    judged.end(1, 1, answer("second"));
    expect(judged.stop?.isDue).toBe(true);
    judged.ask(3);
    judged.crash();
    expect(judged.stop?.groups).toEqual(["pg-2", "pg-3"]);
  });

  it("a verdict that stopped the group has stopped it", () => {
    const judged = new Judged();
    judged.end(2, 0, answer(ENOUGH));
    judged.crash();
    expect(judged.state.groups.get(1)).toBeUndefined();
  });
});

describe("the last permit", () => {
  it("is for the call of the judge while it is queued", () => {
    const judged = new Judged();
    judged.end(2, 0, answer(NOT_YET));
    judged.start();
    expect(judged.group.inFlight).toBe(2);
    const other = makeHeader({ seq: 5, count: 1, serves: { seq: 1, as: "judge", answers: 1 } });
    enqueueSlots(judged.state, judged.state.openGroup(other), 0, [makeFacts()]);
    judged.stop?.callOpened({ seq: 5, id: "pg-5", answers: 1 });
    judged.state.setWidth(2);
    settle(judged.state, `${slotIdOf(1, 1)}.1`, answer("second"), 5);
    // Only the Worker of the judged group has room.
    dispatch(judged.state, new Map([[workerOf(1), 5]]), 5);
    expect(judged.group.inFlight).toBe(1);
    dispatch(judged.state, new Map([[0, 5]]), 5);
    expect(judged.state.groups.get(5)?.inFlight).toBe(1);
  });
});
