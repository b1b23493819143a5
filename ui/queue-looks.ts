/** Reads what the calls of a run wait for, while some are queued: after events, and not while nothing happens. */
import { signal } from "@preact/signals";
import type { Api } from "./api.ts";
import { readQueue, type QueueLook } from "./model/queue.ts";

/** Shortest time between two reads, ms: nobody reads faster, and each one asks the run's object. */
const EVERY_MS = 1_500;

export function queueLooks(api: Api, runId: string) {
  const look = signal<QueueLook | null>(null);
  let due: ReturnType<typeof setTimeout> | null = null;
  let isStopped = false;
  const read = async (): Promise<void> => {
    const document = await api.json(`/runs/${encodeURIComponent(runId)}?queue=1`);
    if (!isStopped) look.value = readQueue(document);
  };
  return {
    look,
    /** Something has happened; `isBusy`: calls have not ended. */
    changed(isBusy: boolean): void {
      if (!isBusy) {
        if (look.value !== null) look.value = null;
        return;
      }
      if (due !== null || isStopped) return;
      due = setTimeout(
        () => {
          due = null;
          // What cannot be read is not shown: the rest of the page does not need it.
          read().catch(() => undefined);
        },
        look.value === null ? 0 : EVERY_MS,
      );
    },
    stop(): void {
      isStopped = true;
      clearTimeout(due ?? undefined);
    },
  };
}
