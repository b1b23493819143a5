/** The lines that stay on the terminal: what an event adds to the history above the live part, or to plain output. */
import { bar, endedText } from "./call-line.ts";
import { callKey, type EventOf, type WatchEvent } from "./event.ts";
import { FAILURES_KEPT } from "./model.ts";
import { usdText } from "../../ui/model/format.ts";
import { countText, durationText, plural } from "./units.ts";
import { type GroupView, total, type View } from "./view.ts";

/** Largest group whose calls are all listed when it ends; for a larger one only the first failures are listed. */
const LISTED_MAX = 32;

export type HistoryStyle = "live" | "plain";

/**
 * The lines of an event, before the view is updated with it. On a live terminal the calls of a group are listed when it ends,
 * because until then they are on the screen; plain output lists each call as it ends.
 */
export function historyOf(view: View, event: WatchEvent, style: HistoryStyle): string[] {
  const missing = event.seq - view.lastSeq - 1;
  const gap = missing > 0 ? [`! ${plural(missing, "event")} before number ${countText(event.seq)} did not arrive`] : [];
  return [...gap, ...linesOf(view, event, style)];
}

function linesOf(view: View, event: WatchEvent, style: HistoryStyle): string[] {
  switch (event.event_type) {
    case "group_started":
      return [startedLine(event)];
    case "group_completed":
      return [...(style === "live" ? callsOf(view, event) : []), completedLine(event)];
    case "slot_completed":
      return style === "live" && isFollowed(view, event) ? [] : [`${nameOf(event)} ${endedText(event)}`];
    case "slots_cancelled": {
      const why = [`✗ ${event.code}`, ...(event.message === null ? [] : [event.message])].join(" · ");
      return [`${event.parallel_group_id ?? "run"} ${plural(event.count, "call")} ${why}`];
    }
    // It is on no row of a large group, so both styles tell it at once.
    case "slot_skipped":
      return [`${nameOf(event)} – skipped: ${event.code} · ${event.message}`];
    case "retry_scheduled": {
      const delay = durationText(event.delay_ms);
      return [`↻ ${nameOf(event)} attempt ${event.attempt} in ${delay}, after ${event.code}`];
    }
    case "throttled":
      return [throttledLine(event)];
    case "budget_refused":
      return [refusedLine(event)];
    case "escalated":
      return event.tier === null
        ? [`‼ ${event.parallel_group_id ?? "run"} ✗ ${event.code} · ${event.message}`]
        : [`‼ ${event.tier} failed: ${nameOf(event)} ✗ ${event.code} · ${event.message}`];
    case "overrun": {
      const billed = `${usdText(event.charged.usd)} for ${usdText(event.reserved.usd)} reserved`;
      return [`! overrun: ${nameOf(event)} ${event.upstream}/${event.model} charged ${billed}`];
    }
    case "tool_called": {
      const ended = event.code === null ? "✓" : `✗ ${event.code}`;
      return [`⚙ tool ${event.tool} ${ended} (${durationText(event.latency_ms)})`];
    }
    case "child_opened":
      return [`+ child ${event.child_run_id} opened with ${usdText(event.reserved.usd)}`];
    case "child_closed":
      return [`- child ${event.child_run_id} ended, ${usdText(event.spent.usd)} spent`];
    case "credit_lost":
      return [`! credit lost: ${usdText(event.charged.usd)} charged for calls that were not reported`];
    case "run_closed":
      return [`■ run ${event.status}`];
    case "client":
      return [clientLine(event)];
    case "unreadable":
      return [`? ${event.name} (number ${countText(event.seq)}) has an unexpected format: ${event.fault}`];
    case "run_opened":
    case "attempt_started":
    case "attempt_ended":
      return [];
  }
}

function startedLine({ count, parallel_group_id: id, effective_parallel: width }: EventOf<"group_started">): string {
  const atOnce = width > 0 && width < count ? ` (${countText(width)} at once)` : "";
  return `⚡ Parallel Execution Started: ${plural(count, "sub-agent")} in group ${id ?? "?"}${atOnce}`;
}

function completedLine(event: EventOf<"group_completed">): string {
  const ended = event.status === "failed" ? "✗ Parallel Execution Failed" : "✓ Parallel Execution Complete";
  const head = event.status === "cancelled" ? "✗ Parallel Execution Cancelled" : ended;
  const facts = [
    `${head}: ${event.parallel_group_id ?? "?"} (${durationText(event.execution_ms)})`,
    `${countText(event.completed)} of ${countText(event.count)} ok`,
    usdText(event.cost),
    `${event.speedup.toFixed(1)}x`,
  ];
  return facts.join(" · ");
}

function callsOf(view: View, event: EventOf<"group_completed">): string[] {
  const group = view.groups.get(event.parallel_group_id ?? "");
  if (group === undefined) return [];
  const listed = event.count <= LISTED_MAX ? [...group.ended.values()] : group.failures;
  const lines = listed.toSorted((a, b) => (a.index ?? 0) - (b.index ?? 0)).map((call) => endedLine(call, group));
  const unlisted = group.tally.failed - group.failures.length;
  if (event.count > LISTED_MAX && unlisted > 0 && group.failures.length === FAILURES_KEPT) {
    lines.push(`  … ${countText(unlisted)} more failed`);
  }
  return lines;
}

/** The line of a call of a group after its end. */
export function endedLine(call: EventOf<"slot_completed">, group: GroupView): string {
  return `  ${labelOf(callKey(call), group)} ${bar(1)} ${endedText(call)}`;
}

/** A call's name in its group, as wide as the group's longest `#index`. */
export function labelOf(key: string, group: GroupView): string {
  return key.padStart(String(Math.max(group.count, total(group.tally)) - 1).length + 1);
}

function refusedLine(event: EventOf<"budget_refused">): string {
  const show = event.dimension === "usd" ? usdText : countText;
  const need = `needs ${show(event.needed)} ${event.dimension}`;
  return `✗ ${nameOf(event)} ${event.code}: ${need}, ${show(event.spent)} of ${show(event.limit)} spent`;
}

/** Why calls wait at a key that its provider refuses, by the cause of the event. */
const STOPS: Readonly<Record<string, string>> = {
  invalid_key: "refuses the gateway's key",
  forbidden: "does not permit the gateway's key what calls need",
  insufficient_quota: "has no quota left for the gateway's key",
};

function throttledLine({ upstream, cause, retry_after_ms: delayMs }: EventOf<"throttled">): string {
  const stop = cause === null ? undefined : STOPS[cause];
  if (stop === undefined) return `! ${upstream} requested a delay of ${durationText(delayMs)}`;
  return `! ${upstream} ${stop} (${cause}): calls wait until it works`;
}

function clientLine({ name, step, hasError, excerpt }: EventOf<"client">): string {
  const head = `${hasError ? "✗" : "›"} ${name}${step === null ? "" : ` step ${step}`}`;
  return excerpt === "" ? head : `${head}: ${excerpt}`;
}

type CallEvent = { parallel_group_id: string | null; index: number | null; call_id: string | null };

function nameOf(event: CallEvent): string {
  return event.parallel_group_id === null ? callKey(event) : `${event.parallel_group_id} ${callKey(event)}`;
}

function isFollowed(view: View, event: CallEvent): boolean {
  return event.parallel_group_id !== null && view.groups.has(event.parallel_group_id);
}
