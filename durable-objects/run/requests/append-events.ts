/** Events that clients add to the run's log. */
import { utf8Bytes } from "../../../src/contract/text.ts";
import type { Reason } from "../../../src/errors.ts";
import { CLIENT_LOG_BYTES_MAX } from "../../../src/limits.ts";
import type { AppendReply, ClientEvent } from "../../../src/objects/methods/log.ts";
import { inSlices, pause, SliceCount, type Sliced } from "../../../src/text/bytes/slices.ts";
import type { RunLifecycle } from "../lifecycle.ts";
import type { RunState } from "../state.ts";
import { roomReason } from "../store/room.ts";

/** Events that are ready to be added: their size, UTF-8 bytes, and each with its JSON as a string of JSON. */
export type ReadyEvents = { bytes: number; events: readonly (ClientEvent & { quoted: string })[] };

/**
 * Adds a client's events to the log: all of them in one turn, or none. They are prepared in slices before, one request after the other, so
 * that requests keep their order. Null if the caller may not, or may not any more.
 */
export async function append(
  life: RunLifecycle,
  events: readonly ClientEvent[],
  mayAdd: () => boolean,
): Promise<AppendReply | null> {
  if (!mayAdd()) return null;
  return await life.appends.add(async () => {
    const ready = await inSlices(preparing(events), pause);
    const adding = (): Promise<AppendReply | null> =>
      life.submit((reply, nowMs) => reply(mayAdd() ? appendEvents(life.opened, life.store, ready, nowMs) : null));
    return await life.withSpace(ready.bytes, adding);
  });
}

/** What takes long of adding events: a post has megabytes of them. */
export function* preparing(events: readonly ClientEvent[]): Sliced<ReadyEvents> {
  const slice = new SliceCount();
  const ready: (ClientEvent & { quoted: string })[] = [];
  let bytes = 0;
  for (const event of events) {
    bytes += utf8Bytes(event.json);
    ready.push({ ...event, quoted: JSON.stringify(event.json) });
    // Counted and written: twice its characters.
    if (slice.add(2 * event.json.length)) yield;
  }
  return { bytes, events: ready };
}

/** Adds a client's events to the turn. The number of the last, or why there is no room for them. */
export function appendEvents(
  run: Pick<RunState, "engine" | "clientLogBytes" | "setClientLogBytes">,
  store: { readonly freeBytes: number },
  { bytes: moreBytes, events }: ReadyEvents,
  nowMs: number,
): AppendReply {
  const full = roomReason(store, moreBytes);
  if (full !== null) return { ok: false, reason: full };
  const bytes = run.clientLogBytes + moreBytes;
  if (bytes > CLIENT_LOG_BYTES_MAX) {
    const what = "what clients have added to this run's log";
    const reason: Reason = { reason: "payload_too_large", what, bytesMax: CLIENT_LOG_BYTES_MAX, param: null };
    return { ok: false, reason };
  }
  const { log } = run.engine;
  for (const { json, quoted, parallelGroupId } of events) log.addClient(json, quoted, parallelGroupId, nowMs);
  // In memory at once: other requests of the same turn count from here.
  run.setClientLogBytes(bytes);
  return { ok: true, seq: log.lastSeq };
}
