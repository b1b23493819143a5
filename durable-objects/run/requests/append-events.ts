/** Events that clients add to the run's log. */
import { utf8Bytes } from "../../../src/contract/text.ts";
import type { Reason } from "../../../src/errors.ts";
import { CLIENT_LOG_BYTES_MAX } from "../../../src/limits.ts";
import type { AppendReply, ClientEvent } from "../../../src/objects/methods/log.ts";
import type { RunLifecycle } from "../lifecycle.ts";
import type { RunState } from "../state.ts";
import { roomReason } from "../store/room.ts";

/** Adds a client's events to the log, in a turn. */
export async function append(life: RunLifecycle, events: readonly ClientEvent[]): Promise<AppendReply> {
  const chars = events.reduce((sum, { json }) => sum + json.length, 0);
  const adding = (): Promise<AppendReply> =>
    life.submit((reply, nowMs) => reply(appendEvents(life.opened, life.store, events, nowMs)));
  return await life.withSpace(chars, adding);
}

/** Adds a client's events to the turn. The number of the last, or why there is no room for them. */
export function appendEvents(
  run: Pick<RunState, "engine" | "clientLogBytes" | "setClientLogBytes">,
  store: { readonly freeBytes: number },
  events: readonly ClientEvent[],
  nowMs: number,
): AppendReply {
  const moreBytes = events.reduce((sum, { json }) => sum + utf8Bytes(json), 0);
  const full = roomReason(store, moreBytes);
  if (full !== null) return { ok: false, reason: full };
  const bytes = run.clientLogBytes + moreBytes;
  if (bytes > CLIENT_LOG_BYTES_MAX) {
    const what = "what clients have added to this run's log";
    const reason: Reason = { reason: "payload_too_large", what, bytesMax: CLIENT_LOG_BYTES_MAX, param: null };
    return { ok: false, reason };
  }
  for (const { json, parallelGroupId } of events) run.engine.log.add({ event: "client", json }, parallelGroupId, nowMs);
  // In memory at once: other requests of the same turn count from here.
  run.setClientLogBytes(bytes);
  return { ok: true, seq: run.engine.log.lastSeq };
}
