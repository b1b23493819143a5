/**
 * What the picture of a run reads of the events of its log. Stored events have all of it; readers of the wire make it of their lines.
 * Amounts are in nano-USD, times in epoch ms.
 */
import type { CallName, RunEvent } from "../../run/log.ts";

type Usd = { usd: number };
type Attempt = CallName & { attempt: number; upstream: string; model: string };

/** Events that change a picture. */
type Pictured =
  | { event: "run_opened"; name: string | null; limits: { usd: number | null } }
  | { event: "run_closed"; status: string }
  | { event: "credit_lost"; charged: Usd }
  | { event: "child_opened"; childRunId: string; reserved: Usd }
  | { event: "child_closed"; childRunId: string; spent: Usd }
  | { event: "group_started"; count: number; tasks?: number | null; retryOf?: string | null }
  | { event: "group_completed"; count: number; status: string | null }
  | ({ event: "attempt_started"; queuedMs: number; reserved: Usd } & Attempt)
  | ({ event: "attempt_ended"; outcome: string; latencyMs: number; estimated: boolean; charged: Usd } & Attempt)
  | ({ event: "retry_scheduled"; attempt: number; delayMs: number } & CallName)
  | ({
      event: "slot_completed";
      status: string;
      model: string | null;
      /** Of its error; absent = a reader of stored events, which have a reason instead. */
      code?: string | null;
      message?: string | null;
      replayed?: boolean;
      usage: { costNanoUsd: number };
    } & CallName)
  | { event: "slots_cancelled"; count: number; status: string }
  | ({ event: "slot_skipped" } & CallName);

/** Others, those of clients and of later versions among them, leave it as it is. */
type Other = { event: Exclude<RunEvent["event"], Pictured["event"]> | "unknown" };

/** An event, when it was, and the group that it belongs to. */
export type PictureEvent = { atMs: number; group: string | null } & (Pictured | Other);

/** What an event of this name says. */
export type EventNamed<Name extends Pictured["event"]> = Extract<PictureEvent, { event: Name }>;
