/** Opening a child run: its budget is reserved in this run before its object exists. */
import type { Reason } from "../../../src/errors.ts";
import { RUN_FULL_RETRY_AFTER_MS } from "../../../src/limits.ts";
import type { RunInput, RunSettings } from "../../../src/objects/methods/runs.ts";
import type { IdempotencyKey, Refused } from "../../../src/objects/methods/types.ts";
import type { RunState } from "../state.ts";
import { inherit } from "./inherit.ts";

/** A child whose budget is reserved; `settings` null = its Idempotency-Key has opened it before. */
export type Added = { ok: true; id: string; settings: RunSettings | null } | Refused;

/** The child that the Idempotency-Key has opened before, else a new one. */
export function openOrReplay(
  run: RunState,
  input: RunInput,
  request: { id: string; idempotencyKey: IdempotencyKey | null },
  nowMs: number,
): Added {
  const { idempotencyKey } = request;
  const before = idempotencyKey === null ? null : childUnderKey(run, idempotencyKey);
  return before ?? addChild(run, input, request, nowMs);
}

/** Reserves a child's budget and derives the settings that its object is to be opened with. */
export function addChild(
  run: RunState,
  input: RunInput,
  { id, idempotencyKey }: { id: string; idempotencyKey: IdempotencyKey | null },
  nowMs: number,
): Added {
  const { children, engine, settings } = run;
  const full = run.noRoomForChild;
  if (full !== null) return { ok: false, reason: full };
  if (children.full) {
    const message = "too many child runs are open in this run; close one first";
    return { ok: false, reason: { reason: "overloaded", message, retryAfterMs: RUN_FULL_RETRY_AFTER_MS } };
  }
  const inherited = inherit({ settings, ledger: engine.ledger, siblings: children.equalShares }, input, { id, nowMs });
  if (!inherited.ok) return inherited;
  const added = children.add(id, inherited, nowMs);
  if (added === null) throw new Error(`the budget of ${id} was allocated but does not fit its parent's`);
  run.addWrite(added.write);
  if (idempotencyKey !== null) run.addKey(idempotencyKey, added.seq);
  engine.log.add({ event: "child_opened", childRunId: id, reserved: inherited.reservation }, null, nowMs);
  return { ok: true, id, settings: inherited.settings };
}

/** The child that an Idempotency-Key has opened; a refusal if the key belongs to another request; null for a new key. */
export function childUnderKey(
  run: Pick<RunState, "keyRecord" | "children">,
  { key, hash }: IdempotencyKey,
): Added | null {
  const before = run.keyRecord(key);
  if (before === null) return null;
  // The hash covers the request's path, so an equal hash means that the number is a child's.
  const id = before.hash === hash ? run.children.idOf(before.seq) : null;
  return id === null ? { ok: false, reason: { reason: "idempotency_conflict" } } : { ok: true, id, settings: null };
}

/** Why a child whose budget was reserved has no object. */
export function notOpenedReason(isOpening: boolean): Reason {
  // Its first request is still under way, or was lost: then the alarm cancels the child.
  if (isOpening)
    return {
      reason: "overloaded",
      message: "the child run is still being opened",
      retryAfterMs: RUN_FULL_RETRY_AFTER_MS,
    };
  return {
    reason: "cancelled",
    message: "the child run was ended before it was opened; its budget was returned to this run",
  };
}
