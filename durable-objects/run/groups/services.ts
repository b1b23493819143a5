/**
 * Groups that serve other groups of the run (src/run/services), such as the calls of a judge. The turn that stores an answer also
 * opens the calls which that answer makes due, so a restart neither repeats nor loses one.
 */
import { parseSettings, SETTINGS_DEFAULT } from "../../../src/contract/call-options.ts";
import { parseCall } from "../../../src/contract/call.ts";
import { CallPageBuilder, type CallPage } from "../../../src/run/queue/call-page.ts";
import type { EngineState } from "../../../src/run/state.ts";
import { drainGroup } from "../../../src/run/steps/end-slot.ts";
import { giveUpStopped } from "../../../src/run/steps/stopping.ts";
import type { Group } from "../../../src/run/group/group.ts";
import type { DueCall, ServiceCall } from "../../../src/run/services/service.ts";
import { callOpened, dueCalls, needlessCalls, type NeedlessCall } from "../../../src/run/services/table.ts";
import type { OpenGroupRequest } from "../../../src/objects/methods/groups.ts";
import { PLAIN_RULES } from "../../../src/objects/clients/groups/plain-rules.ts";
import type { RunState } from "../state.ts";
import { hasEnded } from "../status.ts";
import type { RunStore } from "../store/store.ts";
import { openGroup } from "./open.ts";

/** Opens the calls that are due, and cancels those that are needed no more. True if it has opened any. */
export function openServices(run: RunState, store: RunStore, nowMs: number): boolean {
  let hasOpened = false;
  const { engine } = run;
  for (const group of engine.takeServed()) {
    for (const needless of needlessCalls(group)) cancelNeedless(engine, needless, nowMs);
    if (!hasEnded(run.status)) hasOpened = openDue(run, store, group, nowMs) || hasOpened;
  }
  giveUpStopped(engine, nowMs);
  return hasOpened;
}

/** Cancels a call that is still queued; one in flight ends by itself, or is given up as its kind of service says. */
function cancelNeedless(engine: EngineState, { seq, message, isGivenUp }: NeedlessCall, nowMs: number): void {
  const serving = engine.groups.get(seq);
  if (serving === undefined) return;
  const reason = { reason: "cancelled", message } as const;
  drainGroup(engine, serving, { state: "cancelled", reason, cause: "cancel" }, nowMs);
  if (isGivenUp && serving.inFlight > 0) engine.stopped.add(serving);
}

/** Opens the calls that are due for a group, one after another: each may make others due, or too many. */
function openDue(run: RunState, store: RunStore, group: Group, nowMs: number): boolean {
  for (let hasOpened = false; ; hasOpened = true) {
    const opened = dueCalls(group, run.engine, nowMs).map((due) => openService(run, store, { group, due }, nowMs));
    if (!opened.includes(true)) return hasOpened;
  }
}

/** False if the call cannot be opened, for example because the run has too many groups: then the next answer retries. */
function openService(
  run: RunState,
  store: RunStore,
  { group, due }: { group: Group; due: DueCall },
  nowMs: number,
): boolean {
  const made = pageOf(run, group, due.call);
  if (made === null) return false;
  const { serves } = due;
  const request = requestOf(group, due, made.models);
  const opened = openGroup(run, store, { request, pages: [made.page], hasWorker: false, serves }, nowMs);
  if (opened.ok) callOpened(group, { serves, seq: opened.seq, id: opened.id });
  return opened.ok;
}

function pageOf(run: RunState, group: Group, call: ServiceCall): { page: CallPage; models: (string | null)[] } | null {
  const builder = new CallPageBuilder({});
  if (call.kind === "slot") builder.add({ ...call, body: run.storedCalls.graphBodyOf(group, call.slotId) });
  else {
    const { prompt, settings, path } = call;
    const fieldPath = (field: string): string => `${path}.${field}`;
    const read = parseSettings(settings, SETTINGS_DEFAULT, fieldPath);
    const parsed = read.ok ? parseCall({ prompt }, read.value, fieldPath) : read;
    if (!parsed.ok) return null;
    builder.add(parsed.value);
  }
  const page = builder.flush();
  return page === null ? null : { page, models: builder.models };
}

function requestOf({ header: { trace } }: Group, { name, call }: DueCall, models: (string | null)[]): OpenGroupRequest {
  const traced = trace === undefined ? {} : { trace };
  const ofSlot = call.kind === "slot" ? { hasCustomIds: true, background: true, onLost: "fail" as const } : {};
  // No client's request has a line break in it.
  const openKey = `\n${name}`;
  return { ...PLAIN_RULES, ...ofSlot, openKey, models, count: 1, detach: true, defaultsJson: "{}", ...traced };
}
