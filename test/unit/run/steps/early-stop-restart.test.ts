/** An early stop across restarts: the verdict of the stored answers is the verdict of the answers. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { StopRule } from "../../../../src/run/answers/early-stop.ts";
import type { Outcome } from "../../../../src/call.ts";
import { Ledger, NO_LIMITS } from "../../../../src/run/money/ledger.ts";
import { CallPageBuilder, readFacts } from "../../../../src/run/queue/call-page.ts";
import { giveUpStopped } from "../../../../src/run/steps/stopping.ts";
import { dispatch } from "../../../../src/run/steps/dispatch.ts";
import { settle } from "../../../../src/run/steps/settle.ts";
import { enqueueSlots } from "../../../../src/run/steps/enqueue.ts";
import type { EngineDeps } from "../../../../src/run/state.ts";
import { EngineState } from "../../../../src/run/state.ts";
import { failure, makeFacts, makeHeader, makeTarget } from "../../../support/engine.ts";
import { settingsOf } from "../../../support/engine-opening.ts";
import { Rows } from "../../../support/engine-rows.ts";

const TARGET = makeTarget({ attemptsMax: 1 });
const deps: EngineDeps = { random: () => 0, factsOf: () => makeFacts(), targetOf: () => TARGET };
const settings = settingsOf({ limits: { ...NO_LIMITS }, width: 3 } as Parameters<typeof settingsOf>[0]);

const answerOf = (text: string): Outcome => ({
  kind: "success",
  text,
  model: "gpt-x",
  finishReason: "stop",
  usage: null,
  latencyMs: 1,
});

/** Runs a group whose answers are given, null = a failure; the object dies after each end whose number is in `crashes`. */
function played(rule: StopRule, answers: readonly (string | null)[], crashes: ReadonlySet<number>) {
  const builder = new CallPageBuilder({});
  for (const _ of answers) builder.add({ body: { prompt: "p" }, facts: makeFacts() });
  const page = builder.flush();
  const header = makeHeader({
    count: answers.length,
    models: builder.models,
    rules: { stopWhen: rule },
    concurrency: 3,
  });
  const rows = new Rows();
  const kept = { openKey: "open 1", detach: true, errorStyle: "bracket", named: false } as const;
  rows.putGroup({ header, defaultsJson: "{}", sealed: true, ...kept }, page === null ? [] : [page]);
  let state = new EngineState({ ledger: new Ledger({ ...NO_LIMITS }), width: 3, windowMs: 50 }, deps);
  enqueueSlots(state, state.openGroup(header), 0, page === null ? [] : readFacts(page.facts, header.models));
  let group = state.groups.get(1);
  for (let ends = 0; group !== undefined && !group.done; ends++) {
    dispatch(state, new Map([[0, 3]]), ends);
    const [first] = [...state.attempts.values()].map(({ lease }) => lease);
    if (first?.slotId == null) throw new Error("the group makes no progress");
    const text = answers[first.slotId % 65_536] ?? null;
    settle(state, first.attemptId, text === null ? failure("rejected") : answerOf(text), ends);
    giveUpStopped(state, ends);
    rows.commit(state, ends, false);
    if (!crashes.has(ends)) continue;
    state = rows.rebuild(settings, { ...deps, targetOfLease: () => TARGET }, ends);
    group = state.groups.get(1);
  }
  const { status, counts, saved } = rows.result(1) ?? {};
  return { status, counts, saved };
}

const rules: StopRule[] = [
  { kind: "n_success", n: 3, shadow: false },
  { kind: "quorum", of: 3, agree: 0.75, comparison: { by: "normalized" }, shadow: false },
  { kind: "quorum", of: 2, agree: 1, comparison: { by: "exact" }, shadow: true },
  { kind: "regex", source: "^b$", flags: "", shadow: false },
];

describe.each(rules)("$kind", (rule) => {
  it("ends a group alike, wherever the object dies", () => {
    const answers = fc.array(fc.constantFrom("a", "A", "b", null), { minLength: 1, maxLength: 12 });
    fc.assert(
      fc.property(answers, fc.array(fc.nat(12), { maxLength: 4 }), (texts, crashes) => {
        expect(played(rule, texts, new Set(crashes))).toEqual(played(rule, texts, new Set()));
      }),
    );
  });
});
