/**
 * Delivers a run's events to the operator's webhook, beside everything else: the first time when the turn that stored them is
 * over, and again at alarms. What a restart interrupts is delivered again, under the same id.
 */
import { WEBHOOK_LOST_MS, WEBHOOKS_AT_ONCE } from "../../src/limits.ts";
import type { WebhookEvent, PendingWebhooks } from "../../src/run/webhooks.ts";

/** What the deliveries need of a run. */
export type NotifyingRun = {
  readonly webhooks: Pick<PendingWebhooks, "all" | "due">;
  /** A delivery has ended. */
  webhookTried: (id: string, isAccepted: boolean, nowMs: number) => void;
};

/** What they need of the object around it. */
export type WebhookHost = {
  /** The run; null if it was never opened, or is deleted. */
  readonly run: NotifyingRun | null;
  /** Changes the run in a turn. */
  change: (change: (run: NotifyingRun) => void) => Promise<void>;
};

export type WebhookEffects = {
  now: () => number;
  /** Whether the webhook has accepted the event, or there is none any more. */
  post: (event: WebhookEvent) => Promise<boolean>;
  /** Keeps a promise alive that nothing waits for. */
  keep: (promise: Promise<void>) => void;
  /** A delivery is over: sets the alarm for the next. */
  over: () => void;
};

export class RunWebhooks {
  readonly #host: WebhookHost;
  readonly #effects: WebhookEffects;
  readonly #inFlight = new Set<string>();

  constructor(host: WebhookHost, effects: WebhookEffects) {
    this.#host = host;
    this.#effects = effects;
  }

  /** In how many ms the alarm is to start a delivery; null = nothing is pending. */
  delayMs(nowMs: number): number | null {
    const pending = this.#host.run?.webhooks.all ?? [];
    if (pending.length === 0) return null;
    // A delivery that runs starts the next and sets the alarm itself when it is over. This one is for the case that its instance is lost.
    if (this.#inFlight.size >= WEBHOOKS_AT_ONCE) return WEBHOOK_LOST_MS;
    const delays = pending.map(({ id, atMs }) => (this.#inFlight.has(id) ? WEBHOOK_LOST_MS : atMs - nowMs));
    return Math.max(0, Math.min(...delays));
  }

  /** Starts the deliveries that are due. */
  start(): void {
    const { run } = this.#host;
    if (run === null || run.webhooks.all.length === 0) return;
    for (const event of run.webhooks.due(this.#effects.now())) {
      if (this.#inFlight.size >= WEBHOOKS_AT_ONCE) return;
      if (this.#inFlight.has(event.id)) continue;
      this.#inFlight.add(event.id);
      this.#effects.keep(this.#deliver(run, event));
    }
  }

  async #deliver(run: NotifyingRun, { id, body }: WebhookEvent): Promise<void> {
    const isAccepted = await this.#effects.post({ id, body }).catch((error: unknown) => {
      console.error(`${id} could not be sent to the webhook; it counts as refused`, error);
      return false;
    });
    try {
      // The run may have been deleted meanwhile: nothing may be written for it any more.
      if (this.#host.run === run)
        await this.#host.change((changed) => changed.webhookTried(id, isAccepted, this.#effects.now()));
    } catch (error) {
      // It stays in flight here: the next instance repeats it.
      console.error(`the delivery of ${id} could not be noted; it will be repeated`, error);
      return;
    }
    this.#inFlight.delete(id);
    this.start();
    this.#effects.over();
  }
}
