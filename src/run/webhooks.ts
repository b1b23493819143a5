/**
 * What a run and its groups report to the operator's webhook, as events of the form that OpenAI's SDKs read, and which of them the
 * webhook has not accepted yet; not how they are sent.
 */
import type { Notify } from "../call.ts";
import { WEBHOOK_RETRY_MS, WEBHOOK_TRIES_MAX, WEBHOOKS_PENDING_MAX } from "../limits.ts";

/** Something that may have to be reported of a group. */
export type Notice = { groupId: string; atMs: number; notify: Notify } & (
  | { kind: "ended"; status: string }
  /** `index`: the call that failed; null = the votes of the group decide nothing. */
  | { kind: "escalated"; index: number | null; code: string }
);

/** An event that is to be delivered. Its id is the same whenever it is made: receivers recognise by it what they have. */
export type WebhookEvent = { id: string; body: string };

type Notifying = { id: string; notify?: Notify };

/** The event of a notice; null = neither the group nor its run asks for it. */
export function eventOfNotice(notice: Notice, run: Notifying): WebhookEvent | null {
  const { groupId, atMs, notify } = notice;
  const data = { id: groupId, run_id: run.id };
  if (notice.kind === "ended") {
    // What its run asks for is the end of the run.
    if (notify.onEnd !== true) return null;
    return eventOf(`evt_${groupId}_ended`, "group.ended", atMs, { ...data, status: notice.status });
  }
  if (notify.onEscalation !== true && run.notify?.onEscalation !== true) return null;
  const { index, code } = notice;
  const facts = { index, tier: index === null ? null : "P0", code };
  return eventOf(`evt_${groupId}_escalated`, "group.escalated", atMs, { ...data, ...facts });
}

/** The event of a run's end; null = the run does not ask for it. */
export function runEndEvent(run: Notifying, status: string, atMs: number): WebhookEvent | null {
  if (run.notify?.onEnd !== true) return null;
  return eventOf(`evt_${run.id}_ended`, "run.ended", atMs, { id: run.id, status });
}

function eventOf(id: string, type: string, atMs: number, data: object): WebhookEvent {
  const body = { id, object: "event", created_at: Math.floor(atMs / 1_000), type, data };
  return { id, body: JSON.stringify(body) };
}

/** An event as it is stored. `tries`: deliveries that failed. `atMs`: when the next one is due, epoch ms. */
export type PendingWebhook = WebhookEvent & { tries: number; atMs: number };

/** The events of one run that its operator's webhook has not accepted yet. */
export class PendingWebhooks {
  #all: readonly PendingWebhook[];

  constructor(stored: readonly PendingWebhook[]) {
    this.#all = stored;
  }

  /** In the order of the events, to be stored. */
  get all(): readonly PendingWebhook[] {
    return this.#all;
  }

  /** Adds an event, due at once. False if it is pending already, or there are too many: then it is dropped. */
  add({ id, body }: WebhookEvent, nowMs: number): boolean {
    const isKnown = this.#all.some((pending) => pending.id === id);
    if (isKnown || this.#all.length >= WEBHOOKS_PENDING_MAX) return false;
    this.#all = [...this.#all, { id, body, tries: 0, atMs: nowMs }];
    return true;
  }

  /** The events whose next delivery is due. */
  due(nowMs: number): PendingWebhook[] {
    return this.#all.filter(({ atMs }) => atMs <= nowMs);
  }

  /** A delivery has ended: the event is done if it was accepted or has had all its tries; else it waits, each time twice as long. */
  tried(id: string, isAccepted: boolean, nowMs: number): void {
    this.#all = this.#all.flatMap((pending) => {
      if (pending.id !== id) return [pending];
      const tries = pending.tries + 1;
      if (isAccepted || tries >= WEBHOOK_TRIES_MAX) return [];
      return [{ ...pending, tries, atMs: nowMs + WEBHOOK_RETRY_MS * 2 ** pending.tries }];
    });
  }
}
