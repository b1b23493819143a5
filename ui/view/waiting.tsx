import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { Api } from "../api.ts";
import { countText } from "../model/format.ts";
import type { RunState } from "../model/run-state.ts";
import { addedUp, waitsIn, type Wait } from "../model/waits.ts";

/** Shortest time between two reads, ms: nobody reads faster, and each one asks the run's object. */
const EVERY_MS = 2_000;
/** Groups that are read: a run whose calls wait has few that are open. */
const GROUPS_MAX = 4;

type Waited = { api: Api; runId: string; state: RunState; version: number };

/**
 * Why calls are queued. The log does not say it of each call, so the open groups are read: after events, and not while nothing
 * happens, so that a run that sleeps is left alone.
 */
export function Waiting({ api, runId, state, version }: Waited) {
  const waits = useSignal<Wait[]>([]);
  const due = useRef<ReturnType<typeof setTimeout> | null>(null);
  const isOpen = state.ended === null && state.total - state.endedCalls - state.counts.running > 0;
  // After each event, without a frame of its own as other effects have.
  useLayoutEffect(() => {
    if (!isOpen || due.current !== null) return;
    due.current = setTimeout(() => {
      due.current = null;
      const open = [...state.groups.values()].filter(({ endMs }) => endMs === null).slice(0, GROUPS_MAX);
      const reads = open.map(({ id }) => api.json(`/groups/${encodeURIComponent(id)}`, { runId }));
      Promise.all(reads)
        .then((groups) => void (waits.value = addedUp(groups.flatMap(waitsIn))))
        // What cannot be read is not shown: the rest of the page does not need it.
        .catch(() => undefined);
    }, EVERY_MS);
  }, [version, isOpen]);
  useEffect(() => () => clearTimeout(due.current ?? undefined), []);
  if (!isOpen || waits.value.length === 0) return null;
  return (
    <section aria-label="Waiting">
      <h2>Queued calls wait for</h2>
      <ul>
        {waits.value.map(({ cause, slots }) => (
          <li key={cause}>
            {countText(slots)} × {cause}
          </li>
        ))}
      </ul>
    </section>
  );
}
