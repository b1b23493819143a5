/**
 * Groups that serve other groups of the run (src/run/services), such as the calls of a judge. The turn that stores an answer also
 * opens the calls which that answer makes due, so a restart neither repeats nor loses one.
 */
import { parseSettings, SETTINGS_DEFAULT } from "../../../src/contract/call-options.ts";
import { parseCall } from "../../../src/contract/call.ts";
import { CallPageBuilder, type CallPage } from "../../../src/run/queue/call-page.ts";
import { drainGroup } from "../../../src/run/steps/end-slot.ts";
import type { Group } from "../../../src/run/group/group.ts";
import type { DueCall, ServiceCall } from "../../../src/run/services/service.ts";
import { callOpened, dueCalls, needlessCalls } from "../../../src/run/services/table.ts";
import type { OpenGroupRequest } from "../../../src/objects/methods/groups.ts";
import { PLAIN_RULES } from "../../../src/objects/clients/groups/plain-rules.ts";
import type { RunState } from "../state.ts";
import { hasEnded } from "../status.ts";
import type { RunStore } from "../store/store.ts";
import { openGroup } from "./open.ts";

/** Opens the calls that are due, and cancels those that are needed no more. True if it has opened any. */
export function openServices(run: RunState, store: RunStore, nowMs: number): boolean {
  let hasOpened = false;
  for (const group of run.engine.takeServed()) {
    cancelNeedless(run, group, nowMs);
    if (hasEnded(run.status)) continue;
    for (const due of dueCalls(group)) hasOpened = openService(run, store, { group, due }, nowMs) || hasOpened;
  }
  return hasOpened;
}

/** Cancels calls that are still queued. */
function cancelNeedless({ engine }: RunState, group: Group, nowMs: number): void {
  for (const { seq, message } of needlessCalls(group)) {
    const serving = engine.groups.get(seq);
    if (serving === undefined) continue;
    const reason = { reason: "cancelled", message } as const;
    drainGroup(engine, serving, { state: "cancelled", reason, cause: "cancel" }, nowMs);
  }
}

/** False if the call cannot be opened, for example because the run has too many groups: then the next answer retries. */
function openService(
  run: RunState,
  store: RunStore,
  { group, due }: { group: Group; due: DueCall },
  nowMs: number,
): boolean {
  const made = pageOf(due.call);
  if (made === null) return false;
  const { serves } = due;
  const request = requestOf(group, due, made.models);
  const opened = openGroup(run, store, { request, pages: [made.page], hasWorker: false, serves }, nowMs);
  if (opened.ok) callOpened(group, { serves, seq: opened.seq, id: opened.id });
  return opened.ok;
}

function pageOf({ prompt, settings, path }: ServiceCall): { page: CallPage; models: (string | null)[] } | null {
  const fieldPath = (field: string): string => `${path}.${field}`;
  const read = parseSettings(settings, SETTINGS_DEFAULT, fieldPath);
  const call = read.ok ? parseCall({ prompt }, read.value, fieldPath) : read;
  if (!call.ok) return null;
  const builder = new CallPageBuilder({});
  builder.add(call.value);
  const page = builder.flush();
  return page === null ? null : { page, models: builder.models };
}

function requestOf({ header: { trace } }: Group, { name }: DueCall, models: (string | null)[]): OpenGroupRequest {
  const traced = trace === undefined ? {} : { trace };
  // No client's request has a line break in it.
  const openKey = `\n${name}`;
  return { ...PLAIN_RULES, openKey, models, count: 1, detach: true, defaultsJson: "{}", ...traced };
}
