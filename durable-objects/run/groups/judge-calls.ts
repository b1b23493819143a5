/**
 * Calls of the judges that decide whether groups have enough answers (`stop_when.judge`). Each call is a group of its own. The turn
 * that stores an answer also opens the call which that answer makes due, so a restart neither repeats nor loses the call.
 */
import { VERDICT_SCHEMA, type JudgedStop, type JudgeRule } from "../../../src/run/answers/judged-stop.ts";
import { parseSettings, SETTINGS_DEFAULT } from "../../../src/contract/call-options.ts";
import { parseCall } from "../../../src/contract/call.ts";
import { CallPageBuilder, type CallPage } from "../../../src/run/queue/call-page.ts";
import { drainGroup } from "../../../src/run/steps/end-slot.ts";
import type { Group } from "../../../src/run/group/group.ts";
import type { OpenGroupRequest } from "../../../src/objects/methods/groups.ts";
import { PLAIN_RULES } from "../../../src/objects/clients/groups/plain-rules.ts";
import type { RunState } from "../state.ts";
import { hasEnded } from "../status.ts";
import type { RunStore } from "../store/store.ts";
import { openGroup } from "./open.ts";

/** Opens the calls that are due, and cancels those that are queued for groups that have stopped. True if it has opened any. */
export function openJudgeCalls(run: RunState, store: RunStore, nowMs: number): boolean {
  let hasOpened = false;
  for (const group of run.engine.takeJudged()) {
    const stop = group.judgedStop;
    if (stop === null) continue;
    const isOver = group.done || group.drained !== null || group.saved !== null;
    if (isOver) cancelQueuedCall(run, stop, nowMs);
    else if (stop.isDue && mayStopAny(group) && !hasEnded(run.status))
      hasOpened = openJudgeCall(run, store, { group, stop }, nowMs) || hasOpened;
  }
  return hasOpened;
}

/** Whether a stop saves anything: where all calls have begun and end by themselves, a judge only costs. */
function mayStopAny({ counts, judgedStop }: Group): boolean {
  const { inFlight, shadow } = judgedStop?.rule ?? {};
  return counts.queued > 0 || inFlight === "abort" || shadow === true;
}

/** Cancels a judge's call that is still queued. One in flight is already paid for, and runs to its end. */
function cancelQueuedCall({ engine }: RunState, { openCallSeq }: JudgedStop, nowMs: number): void {
  const judging = openCallSeq === null ? undefined : engine.groups.get(openCallSeq);
  if (judging === undefined) return;
  const reason = { reason: "cancelled", message: "the group that this call judges has ended or stopped" } as const;
  drainGroup(engine, judging, { state: "cancelled", reason, cause: "cancel" }, nowMs);
}

/** False if the call cannot be opened, for example because the run has too many groups: then the next answer retries. */
function openJudgeCall(
  run: RunState,
  store: RunStore,
  { group, stop }: { group: Group; stop: JudgedStop },
  nowMs: number,
): boolean {
  const made = callOf(stop);
  if (made === null) return false;
  const request = requestOf(group, stop, made.models);
  const judges = { seq: group.header.seq, answers: stop.answers };
  const opened = openGroup(run, store, { request, pages: [made.page], hasWorker: false, judges }, nowMs);
  if (opened.ok) stop.callOpened({ seq: opened.seq, id: opened.id, answers: judges.answers });
  return opened.ok;
}

function callOf({ rule, prompt }: JudgedStop): { page: CallPage; models: (string | null)[] } | null {
  const path = (field: string): string => `stop_when.judge.${field}`;
  const settings = parseSettings(settingsOf(rule), SETTINGS_DEFAULT, path);
  const call = settings.ok ? parseCall({ prompt }, settings.value, path) : settings;
  if (!call.ok) return null;
  const builder = new CallPageBuilder({});
  builder.add(call.value);
  const page = builder.flush();
  return page === null ? null : { page, models: builder.models };
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

function requestOf(group: Group, { groups }: JudgedStop, models: (string | null)[]): OpenGroupRequest {
  const { trace } = group.header;
  // No client's request has a line break in it.
  const openKey = `\nstop ${group.header.id} ${groups.length}`;
  const traced = trace === undefined ? {} : { trace };
  return { ...PLAIN_RULES, openKey, models, count: 1, detach: true, defaultsJson: "{}", ...traced };
}
