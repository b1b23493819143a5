/** One call as text, with its bar. */
import { labelTexts } from "../../src/labels.ts";
import type { Call } from "../../src/log/picture/call.ts";
import type { EndedCall } from "./view.ts";
import { exactUsdText } from "../../ui/model/format.ts";
import { durationText, plural } from "./units.ts";

const BAR_CELLS = 10;
/** Largest share of a running call's bar: only an answer fills it. */
const RUNNING_SHARE_MAX = 0.9;

/** A bar that is filled to `share` of 1. */
export function bar(share: number): string {
  const filled = Math.min(BAR_CELLS, Math.max(0, Math.floor(share * BAR_CELLS)));
  return `[${"█".repeat(filled)}${"·".repeat(BAR_CELLS - filled)}]`;
}

export const QUEUED_TEXT = `${bar(0)} queued`;

/**
 * A call that has not ended. Its progress is unknown; the bar shows its time so far as a share of `typicalMs`, the average time of
 * answered attempts of this run.
 */
export function activeText({ state, attempts, retry, labels }: Call, nowMs: number, typicalMs: number): string {
  const running = state === "running";
  // The newest one in flight; of a call that waits, the one before.
  const attempt = attempts.findLast(({ endMs }) => endMs === null) ?? attempts.at(-1);
  const { number: tried = 1, startMs = nowMs, model = "" } = attempt ?? {};
  // The gateway's clock may be ahead of this machine's.
  const elapsedMs = Math.max(0, nowMs - startMs);
  const share = running ? Math.min(RUNNING_SHARE_MAX, elapsedMs / typicalMs) : 0;
  const status = running ? `running ${durationText(elapsedMs, 1)}` : waitText(retry?.dueMs ?? 0, nowMs);
  const number = running ? tried : (retry?.attempt ?? tried);
  const parts = [`${bar(share)} ${status}`, ...labelParts(labels), model, ...(number > 1 ? [`attempt ${number}`] : [])];
  return parts.join(" · ");
}

/** A call that has ended: `✓` with its duration, or `✗` with the error's code and message. */
export function endedText(call: EndedCall): string {
  const { llm_call_start: startMs, llm_call_end: endMs } = call.timestamps;
  const tookMs = startMs === null || endMs === null ? null : endMs - startMs;
  const mark = call.status === "completed" ? "✓" : "✗";
  const parts = call.status === "completed" ? [] : [call.code ?? call.status];
  parts.push(...labelParts(labelTexts(call)));
  if (tookMs !== null) parts.push(durationText(tookMs));
  if (call.model !== null) parts.push(call.model);
  const costUsd = call.usage?.cost ?? 0;
  if (costUsd > 0) parts.push(exactUsdText(costUsd));
  if (call.attempts > 1) parts.push(plural(call.attempts, "attempt"));
  if (call.message) parts.push(call.message);
  return `${mark} ${parts.join(" · ")}`;
}

/** `Step 3/20`: labels as parts of a line. */
function labelParts(texts: readonly string[]): string[] {
  return texts.map((text) => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`);
}

function waitText(dueMs: number, nowMs: number): string {
  return dueMs > nowMs ? `retry in ${durationText(dueMs - nowMs, 1)}` : "waiting";
}
