/** Events that clients add to the run's log. */
import { utf8Bytes } from "../../../src/contract/text.ts";
import type { Reason } from "../../../src/errors.ts";
import { CLIENT_LOG_BYTES_MAX } from "../../../src/limits.ts";
import type { AppendReply, ClientEvent } from "../../../src/run-api/log.ts";
import type { RunState } from "../state.ts";
import { roomReason } from "../store/room.ts";

/** Adds a client's events to the turn. The number of the last, or why there is no room for them. */
export function appendEvents(
  run: Pick<RunState, "engine" | "clientLogBytes" | "setClientLogBytes">,
  storedBytes: number,
  events: readonly ClientEvent[],
  nowMs: number,
): AppendReply {
  const full = roomReason(storedBytes);
  if (full !== null) return { ok: false, reason: full };
  const bytes = run.clientLogBytes + events.reduce((sum, { json }) => sum + utf8Bytes(json), 0);
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
