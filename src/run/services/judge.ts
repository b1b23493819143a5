/** The call of a judge that decides whether a group has enough answers (`stop_when.judge`). */
import { saysEnough, VERDICT_SCHEMA, type JudgedStop, type JudgeRule } from "../answers/judged-stop.ts";
import type { Group } from "../group/group.ts";
import { JudgedStopRule } from "../rules/judged-stop.ts";
import type { Service } from "./service.ts";

export const judge: Service<"judge"> = {
  mayServe: (group) => stopOf(group) !== null,

  due(served) {
    const { header } = served;
    const stop = stopOf(served);
    if (stop === null || isOver(served) || !stop.isDue || !mayStopAny(served, stop.rule)) return [];
    const call = {
      kind: "prompt",
      prompt: stop.prompt,
      settings: settingsOf(stop.rule),
      path: "stop_when.judge",
    } as const;
    const name = `stop ${header.id} ${stop.groups.length}`;
    return [{ serves: { seq: header.seq, as: "judge", answers: stop.answers }, name, call }];
  },

  opened(served, { serves: { answers }, seq, id }) {
    stopOf(served)?.callOpened({ seq, id, answers });
  },

  ended(served, { id }, end) {
    const stop = stopOf(served);
    stop?.callEnded();
    if (stop === null || served.hasStopped || end.state !== "completed") return null;
    return saysEnough(end.text ?? "") ? { kind: "stop", rule: `judge ${id}` } : null;
  },

  // Its answer may cancel slots, which must not keep it waiting.
  goesFirst: (served) => stopOf(served)?.openCallSeq ?? null,

  // One in flight is already paid for, and runs to its end.
  needless(served) {
    const seq = stopOf(served)?.openCallSeq ?? null;
    return seq !== null && isOver(served) ? [seq] : [];
  },

  needlessMessage: "the group that this call judges has ended or stopped",
  isGivenUp: false,
  isTriedOnce: false,
};

function stopOf({ rules }: Group): JudgedStop | null {
  return rules.find(JudgedStopRule)?.judged ?? null;
}

function isOver({ done, hasStopped }: Group): boolean {
  return done || hasStopped;
}

/** Whether a stop saves anything: where all calls have begun and end by themselves, a judge only costs. */
function mayStopAny({ counts }: Group, { inFlight, shadow }: JudgeRule): boolean {
  return counts.queued > 0 || inFlight === "abort" || shadow;
}

/** The judge's call goes before the group's queued calls, because its answer may make them needless. */
function settingsOf({ model, maxTokens }: JudgeRule) {
  return {
    schema: VERDICT_SCHEMA,
    priority: "critical" as const,
    ...(model !== null && { model }),
    ...(maxTokens !== null && { max_tokens: maxTokens }),
  };
}
