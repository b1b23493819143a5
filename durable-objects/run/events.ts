/** The run's log: reading it, and what clients add to it. */
import { utf8Bytes } from "../../src/contract/text.ts";
import type { Reason } from "../../src/errors.ts";
import { CLIENT_LOG_BYTES_MAX, LOG_REPLY_CHARS_MAX } from "../../src/limits.ts";
import type { RunCore } from "./core.ts";
import type { ClientEvent, LogPage, Refused } from "./rpc.ts";
import type { RunStore } from "./store.ts";

/** Stored events after number `after`, up to the size of one reply. */
export function logPage(core: RunCore, store: RunStore, after: number): LogPage {
  const { id, parentId, depth } = core.settings;
  const rows = store.log.after(after, LOG_REPLY_CHARS_MAX);
  const last = rows.at(-1)?.last ?? after;
  const final = core.isFinal && !core.state.log.pending && last >= core.durableSeq;
  return { rows, run: { id, parentId, depth }, final };
}

/** Adds a client's events to the turn. The number of the last, or why there is no room for them. */
export function appendEvents(
  core: RunCore,
  store: RunStore,
  events: readonly ClientEvent[],
  nowMs: number,
): { ok: true; seq: number } | Refused {
  const bytes = core.clientLogBytes + events.reduce((sum, { json }) => sum + utf8Bytes(json), 0);
  if (bytes > CLIENT_LOG_BYTES_MAX) {
    const what = "what clients have added to this run's log";
    const reason: Reason = { reason: "payload_too_large", what, bytesMax: CLIENT_LOG_BYTES_MAX, param: null };
    return { ok: false, reason };
  }
  for (const { json, parallelGroupId } of events) core.state.log.add({ event: "client", json }, parallelGroupId, nowMs);
  // In memory at once: others of the same turn count on from here.
  core.clientLogBytes = bytes;
  core.writes.push(() => store.putClientLogBytes(bytes));
  return { ok: true, seq: core.state.log.lastSeq };
}
