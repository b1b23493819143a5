/** The events of one run that its operator's webhook has not accepted yet. */
import { WEBHOOK_RETRY_MS, WEBHOOK_TRIES_MAX, WEBHOOKS_PENDING_MAX } from "../../limits.ts";
import type { WebhookEvent } from "./events.ts";

/** An event as it is stored. `tries`: deliveries that failed. `atMs`: when the next one is due, epoch ms. */
export type PendingWebhook = WebhookEvent & { tries: number; atMs: number };

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
