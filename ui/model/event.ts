/** Lines of a run's log as events of its picture. A field that a line of its type should have and lacks is 0, or unknown. */
import { labelsIn } from "../../src/labels.ts";
import type { PictureEvent } from "../../src/log/picture/event.ts";
import { nanoUsdOf } from "../../src/run/money/money.ts";
import { numberOf, objectOf, textOf, type LogLine } from "./line.ts";

type Fields = LogLine["fields"];

export function eventIn(line: LogLine): PictureEvent {
  const { atMs, group, fields, type: event } = line;
  const place = { atMs, group };
  switch (event) {
    case "run_opened": {
      const usd = objectOf(fields, "limits")["usd"];
      const limits = { usd: typeof usd === "number" ? nanoUsdOf(usd) : null };
      return { ...place, event, name: textOf(fields, "name"), limits };
    }
    case "run_closed":
      return { ...place, event, status: textOf(fields, "status") ?? "closed" };
    case "credit_lost":
      return { ...place, event, charged: amountIn(fields, "charged") };
    case "child_opened":
      return {
        ...place,
        event,
        childRunId: textOf(fields, "child_run_id") ?? "",
        reserved: amountIn(fields, "reserved"),
      };
    case "child_closed":
      return { ...place, event, childRunId: textOf(fields, "child_run_id") ?? "", spent: amountIn(fields, "spent") };
    case "group_started": {
      const tasks = typeof fields["tasks"] === "number" ? fields["tasks"] : null;
      return { ...place, event, count: numberOf(fields, "count"), tasks, retryOf: textOf(fields, "retry_of") };
    }
    case "group_completed":
      return { ...place, event, count: numberOf(fields, "count"), status: textOf(fields, "status") };
    case "slots_cancelled":
      return { ...place, event, count: numberOf(fields, "count"), status: textOf(fields, "status") ?? "" };
    default:
      return callEventIn(line) ?? { ...place, event: "unknown" };
  }
}

/** An event of one call; null = it is not of one, or of none that the picture knows. */
function callEventIn({ atMs, group, fields, type: event }: LogLine): PictureEvent | null {
  const call = { atMs, group, index: indexIn(fields), callId: textOf(fields, "call_id"), ...labelsIn(fields) };
  switch (event) {
    case "attempt_started":
      return {
        ...{ ...call, event, ...attemptIn(fields), queuedMs: numberOf(fields, "queued_ms") },
        reserved: amountIn(fields, "reserved"),
      };
    case "attempt_ended": {
      const outcome = textOf(fields, "outcome") ?? "";
      const ended = { outcome, latencyMs: numberOf(fields, "latency_ms"), estimated: fields["estimated"] === true };
      return { ...call, event, ...attemptIn(fields), ...ended, charged: amountIn(fields, "charged") };
    }
    case "retry_scheduled":
      return { ...call, event, attempt: numberOf(fields, "attempt"), delayMs: numberOf(fields, "delay_ms") };
    case "slot_skipped":
      return { ...call, event };
    case "slot_completed": {
      const [status, model] = [textOf(fields, "status") ?? "failed", textOf(fields, "model")];
      const error = { code: textOf(fields, "code"), message: textOf(fields, "message") };
      const costNanoUsd = nanoUsdOf(numberOf(objectOf(fields, "usage"), "cost"));
      return { ...call, event, status, model, ...error, replayed: fields["replayed"] === true, usage: { costNanoUsd } };
    }
    default:
      return null;
  }
}

function indexIn(fields: Fields): number | null {
  return typeof fields["index"] === "number" ? fields["index"] : null;
}

function attemptIn(fields: Fields) {
  const [upstream, model] = [textOf(fields, "upstream") ?? "", textOf(fields, "model") ?? ""];
  return { attempt: numberOf(fields, "attempt"), upstream, model };
}

function amountIn(fields: Fields, name: string): { usd: number } {
  return { usd: nanoUsdOf(numberOf(objectOf(fields, name), "usd")) };
}
