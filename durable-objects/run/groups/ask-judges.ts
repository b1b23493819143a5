/**
 * Asks judges whether groups have enough (`stop_when.judge`). The call is a group of its own, which the turn of the answer that
 * makes it due opens: so both are stored together, and a restart neither asks twice nor forgets to ask.
 */
import { VERDICT_SCHEMA, type JudgedStop, type JudgeRule } from "../../../src/aggregate/judged-stop.ts";
import { parseSettings, SETTINGS_DEFAULT } from "../../../src/contract/call-options.ts";
import { parseCall } from "../../../src/contract/call.ts";
import { CallPageBuilder, type CallPage } from "../../../src/engine/call-page.ts";
import { drainGroup } from "../../../src/engine/end-slot.ts";
import type { Group } from "../../../src/engine/group.ts";
import type { OpenGroupRequest } from "../../../src/run-api/groups.ts";
import type { RunState } from "../state.ts";
import { hasEnded } from "../status.ts";
import type { RunStore } from "../store/store.ts";
import { openGroup } from "./open.ts";

/** Opens the calls that are due, and cancels those that are queued for groups that have stopped. True if it has opened any. */
export function askJudges(run: RunState, store: RunStore, nowMs: number): boolean {
  let hasOpened = false;
  for (const group of run.engine.takeJudged()) {
    const stop = group.judgedStop;
    if (stop === null) continue;
    const isOver = group.done || group.drained !== null || group.saved !== null;
    if (isOver) withdraw(run, stop, nowMs);
    else if (stop.isDue && !hasEnded(run.status)) hasOpened = ask(run, store, { group, stop }, nowMs) || hasOpened;
  }
  return hasOpened;
}

/** A call in flight is paid for, and ends by itself. */
function withdraw({ engine }: RunState, { asked }: JudgedStop, nowMs: number): void {
  const judging = asked === null ? undefined : engine.groups.get(asked);
  if (judging === undefined) return;
  const reason = { reason: "cancelled", message: "the group that this call judges has ended or stopped" } as const;
  drainGroup(engine, judging, { state: "cancelled", reason, cause: "cancel" }, nowMs);
}

/** False if it cannot be opened, such as for want of room: then the next answer tries again. */
function ask(
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
  if (opened.ok) stop.ask({ seq: opened.seq, id: opened.id, answers: judges.answers });
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

/** Before what is queued of the group: its answer may make that needless. */
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
  return {
    // No client's request has a line break in it.
    openKey: `\nstop ${group.header.id} ${groups.length}`,
    models,
    idempotencyKey: null,
    count: 1,
    single: false,
    background: false,
    detach: true,
    errorStyle: null,
    hasCustomIds: false,
    concurrency: null,
    onError: "continue",
    onBudget: "partial",
    onLost: "retry",
    split: false,
    deadlineMs: null,
    defaultsJson: "{}",
    ...(trace === undefined ? {} : { trace }),
  };
}
