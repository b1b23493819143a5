/** The call of a judge that decides whether a group has enough answers (`stop_when.judge`). */
import { saysEnough, VERDICT_SCHEMA, type JudgeRule } from "../answers/judged-stop.ts";
import type { Group } from "../group/group.ts";
import type { Service } from "./service.ts";

export const judge: Service<"judge"> = {
  due(served) {
    const { judgedStop: stop, header } = served;
    if (stop === null || isOver(served) || !stop.isDue || !mayStopAny(served)) return [];
    const call = {
      kind: "prompt",
      prompt: stop.prompt,
      settings: settingsOf(stop.rule),
      path: "stop_when.judge",
    } as const;
    const name = `stop ${header.id} ${stop.groups.length}`;
    return [{ serves: { seq: header.seq, as: "judge", answers: stop.answers }, name, call }];
  },

  opened({ judgedStop }, { serves: { answers }, seq, id }) {
    judgedStop?.callOpened({ seq, id, answers });
  },

  ended({ judgedStop, saved, drained }, { id }, end) {
    judgedStop?.callEnded();
    if (judgedStop === null || saved !== null || drained !== null || end.state !== "completed") return null;
    return saysEnough(end.text ?? "") ? { kind: "stop", rule: `judge ${id}` } : null;
  },

  // One in flight is already paid for, and runs to its end.
  needless(served) {
    const seq = served.judgedStop?.openCallSeq ?? null;
    return seq !== null && isOver(served) ? [seq] : [];
  },

  needlessMessage: "the group that this call judges has ended or stopped",
  isGivenUp: false,
  isTriedOnce: false,
};

function isOver({ done, drained, saved }: Group): boolean {
  return done || drained !== null || saved !== null;
}

/** Whether a stop saves anything: where all calls have begun and end by themselves, a judge only costs. */
function mayStopAny({ counts, judgedStop }: Group): boolean {
  const { inFlight, shadow } = judgedStop?.rule ?? {};
  return counts.queued > 0 || inFlight === "abort" || shadow === true;
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
