/**
 * Early stops and what is in flight. An abort charges the whole reservation, which is several times what most answers cost: so an
 * attempt in flight ends by itself, unless it is stuck, or costs no more aborted than answered.
 */
import type { Group } from "../group/group.ts";
import type { EngineState, InFlight } from "../state.ts";
import { isReported, stopAttempt } from "./cancel.ts";
import { attemptsOf, isStuck } from "./stop-width.ts";

/** Gives up attempts in flight of the groups that have stopped early, as their rules say. */
export function giveUpStopped(state: EngineState, nowMs: number): void {
  for (const group of state.stopped) {
    if (group.drained !== null) giveUpOf(state, group, nowMs);
    const isAwaited = group.inFlight > 0 && group.stopping?.inFlight === undefined;
    if (!isAwaited || group.done) state.stopped.delete(group);
  }
}

function giveUpOf(state: EngineState, group: Group, nowMs: number): void {
  const { drained, stopping } = group;
  if (drained === null || stopping?.inFlight === "finish") return;
  const { serves } = group.header;
  // The answers of the group that it serves are like its own.
  const served = serves === undefined ? undefined : state.groups.get(serves.seq);
  const answerNanoUsd = (served ?? group).meanAnswerNanoUsd;
  const isGivenUp = (inFlight: InFlight): boolean =>
    stopping?.inFlight === "abort" || inFlight.lease.amounts.usd <= answerNanoUsd || isStuck(group, inFlight, nowMs);
  for (const inFlight of attemptsOf(state, group).filter(isGivenUp)) {
    const { lease } = inFlight;
    // What costs less than its reservation is noted with its report.
    if (!isReported(inFlight)) group.noteAborted(lease.hedgeOf === undefined ? 1 : 0, lease.amounts.usd);
    stopAttempt(state, inFlight, drained.reason, nowMs);
  }
}
