/**
 * Updates the view of a run with its events. Memory is bounded for any length of run: a group is removed when it has ended, and a
 * call of a large group when newer ones have ended.
 */
import type { EventOf, WatchEvent } from "./event.ts";
import { type ActiveCall, callKey, type GroupView, noTally, total, type View } from "./view.ts";

/** Groups in the view: as many as a run may have open. */
const GROUPS_MAX = 256;
/** Calls in the view per group, and outside of groups: the gateway's own bounds. */
const CALLS_ACTIVE_MAX = 10_000;
/** Ended calls in the view per group: more than any terminal has rows. */
const CALLS_ENDED_KEPT = 256;
/** Failed calls that are listed at the end of a group. */
export const FAILURES_KEPT = 10;

/** Updates the view with an event. Events must arrive in order, each once. */
export function fold(view: View, event: WatchEvent): void {
  view.lastSeq = event.seq;
  switch (event.event_type) {
    case "run_opened":
      view.name = event.name;
      view.limitUsd = event.limits.usd;
      return;
    case "group_started":
      return startGroup(view, event);
    case "attempt_started":
      return startAttempt(view, event);
    case "attempt_ended":
      return endAttempt(view, event);
    case "retry_scheduled":
      return scheduleRetry(view, event);
    case "slot_completed":
      return endCall(view, event);
    case "slots_cancelled":
      return endUnstarted(view, event);
    case "slot_skipped":
      return skipCall(view, event);
    case "group_completed":
      view.groups.delete(event.parallel_group_id ?? "");
      return;
    case "child_closed":
      view.spentUsd += event.spent.usd;
      return;
    case "run_closed":
      view.status = event.status;
      return;
    case "throttled":
    case "budget_refused":
    case "escalated":
    case "overrun":
    case "tool_called":
    case "child_opened":
    case "client":
    case "unreadable":
      return;
  }
}

function startGroup(view: View, { parallel_group_id: id, count }: EventOf<"group_started">): void {
  if (id === null) return;
  const group = newGroup(view, id);
  group.count = Math.max(group.count, count);
}

/** The group of this id, added if the view does not have it. */
function newGroup(view: View, id: string): GroupView {
  const known = view.groups.get(id);
  if (known !== undefined) return known;
  const calls = { active: new Map(), ended: new Map(), skipped: new Map() };
  const group = { id, count: 0, tally: noTally(), ...calls, failures: [] };
  view.groups.set(id, group);
  keepNewest(view.groups, GROUPS_MAX);
  return group;
}

function startAttempt(view: View, event: EventOf<"attempt_started">): void {
  const key = callKey(event);
  // Single calls start before their group is announced: it is when all of them are known.
  const { parallel_group_id: id } = event;
  const group = id === null ? null : newGroup(view, id);
  // The first of several single calls starts before it is known that it will be part of a group.
  if (group !== null) view.single.delete(key);
  const calls = group?.active ?? view.single;
  const { model, attempt, ts } = event;
  calls.set(key, { phase: "running", model, attempt, sinceMs: ts, dueMs: ts });
  keepNewest(calls, CALLS_ACTIVE_MAX);
  if (group !== null) growToKnown(group);
}

function endAttempt(view: View, event: EventOf<"attempt_ended">): void {
  view.spentUsd += event.charged.usd;
  if (event.outcome === "success") {
    view.attempts.ended += 1;
    view.attempts.latencyMs += event.latency_ms;
  }
  const call = activeCall(view, event);
  if (call?.attempt !== event.attempt) return;
  call.phase = "waiting";
  call.sinceMs = call.dueMs = event.ts;
}

function scheduleRetry(view: View, event: EventOf<"retry_scheduled">): void {
  const call = activeCall(view, event);
  if (call === null) return;
  call.phase = "waiting";
  call.attempt = event.attempt;
  call.dueMs = event.ts + event.delay_ms;
}

function endCall(view: View, event: EventOf<"slot_completed">): void {
  const key = callKey(event);
  const outcome = event.status === "completed" ? "ok" : event.status;
  view.single.delete(key);
  view.tally[outcome] += 1;
  const group = groupOf(view, event);
  if (group === null) return;
  group.active.delete(key);
  group.tally[outcome] += 1;
  group.ended.set(key, event);
  keepNewest(group.ended, CALLS_ENDED_KEPT);
  if (event.status === "failed" && group.failures.length < FAILURES_KEPT) group.failures.push(event);
  growToKnown(group);
}

function endUnstarted(view: View, event: EventOf<"slots_cancelled">): void {
  view.tally[event.status] += event.count;
  const group = groupOf(view, event);
  if (group !== null) group.tally[event.status] += event.count;
}

function skipCall(view: View, event: EventOf<"slot_skipped">): void {
  view.tally.skipped += 1;
  const group = groupOf(view, event);
  if (group === null) return;
  group.tally.skipped += 1;
  group.skipped.set(callKey(event), event.code);
  keepNewest(group.skipped, CALLS_ENDED_KEPT);
  growToKnown(group);
}

function groupOf(view: View, event: { parallel_group_id: string | null }): GroupView | null {
  return view.groups.get(event.parallel_group_id ?? "") ?? null;
}

type CallEvent = { parallel_group_id: string | null; index: number | null; call_id: string | null };

function activeCall(view: View, event: CallEvent): ActiveCall | null {
  const key = callKey(event);
  return groupOf(view, event)?.active.get(key) ?? view.single.get(key) ?? null;
}

/** A group of single calls is announced when all of them are known; some have started by then. */
function growToKnown(group: GroupView): void {
  group.count = Math.max(group.count, total(group.tally) + group.active.size);
}

/** Removes the oldest entries above the bound. */
function keepNewest(entries: Map<string, unknown>, max: number): void {
  for (const key of entries.keys()) {
    if (entries.size <= max) return;
    entries.delete(key);
  }
}
