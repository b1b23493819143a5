/** The replay of a run, with what it needs of the run and outside of it. */
import { callContent } from "../../../src/recordings/content.ts";
import type { ReplayRule } from "../../../src/objects/methods/replay.ts";
import type { StoredCalls } from "../store/stored-calls.ts";
import type { RunStore } from "../store/store.ts";
import type { RunTargets } from "../targets.ts";
import { OtherRun, type OtherRunDeps } from "./other-run.ts";
import { Recordings } from "./recordings.ts";
import { RunReplay } from "./replay.ts";

/** What replay does outside of turns. */
export type ReplayEffects = {
  /** The run that a rule names. */
  otherRun: (from: string, rule: ReplayRule) => Omit<OtherRunDeps, "arrived">;
  hash: (text: string) => Promise<string>;
  /** Runs in a turn of its own. */
  inTurn: (callback: (nowMs: number) => void) => void;
};

type ReplayingRun = {
  store: RunStore;
  calls: StoredCalls;
  targets: RunTargets;
  addWrite: (write: () => void) => void;
  /** These slots may be looked up again, in a turn that follows. */
  lookAgain: (slotIds: readonly number[]) => void;
};

/** The replay of a run that records, by its rule. */
export function openReplay(
  rule: ReplayRule,
  effects: ReplayEffects,
  { store, calls, targets, addWrite, lookAgain }: ReplayingRun,
): RunReplay {
  const { from } = rule;
  const replay: RunReplay = new RunReplay({
    recordings: new Recordings({ store, addWrite }),
    otherRun: from === null ? null : new OtherRun({ ...effects.otherRun(from, rule), arrived: () => replay.arrived() }),
    contentOf: (group, slotId) => {
      const { content, ...facts } = calls.factsIn(group, slotId);
      if (content === undefined) return null;
      const body = calls.substitutedBodyOf(group, slotId);
      return body === null ? { hash: content } : { text: callContent(body, facts) };
    },
    mayShare: (group, slotId) => calls.factsIn(group, slotId).dedupeKey !== undefined,
    modelOf: (group, slotId) => calls.factsIn(group, slotId).model,
    routeOf: (model) => targets.recordedNameOf(model),
    hash: effects.hash,
    lookAgain,
    inTurn: effects.inTurn,
  });
  return replay;
}
