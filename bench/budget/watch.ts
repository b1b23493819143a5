/** Polls a run's budget and keeps the worst values. */
import { z } from "zod";

const line = z.object({
  limit: z.number().nullable(),
  spent: z.number(),
  reserved: z.number(),
  remaining: z.number().nullable(),
});
const budget = z.object({ usd: line, calls: line, prompt_tokens: line, completion_tokens: line });
const DIMENSIONS = ["usd", "calls", "prompt_tokens", "completion_tokens"] as const;

/** USD amounts are nano-USD. */
export type Look = { limit: number | null; spent: number; reserved: number; calls: number; anyReserved: boolean };

const LOOK_EVERY_MS = 20;

/** One look; throws when the gateway does not answer. */
export async function look(url: string, token: string): Promise<Look> {
  const response = await fetch(`${url}/budget`, {
    headers: { authorization: `Bearer ${token}` },
    signal: AbortSignal.timeout(10_000),
  });
  const lines = budget.parse(await response.json());
  const { limit, spent, reserved } = lines.usd;
  return {
    limit: limit === null ? null : Math.round(limit * 1e9),
    spent: Math.round(spent * 1e9),
    reserved: Math.round(reserved * 1e9),
    calls: lines.calls.spent,
    anyReserved: DIMENSIONS.some((dimension) => lines[dimension].reserved !== 0),
  };
}

export class Watch {
  looks = 0;
  /** The most that was spent and reserved at one instant, nano-USD. */
  committedMax = 0;
  /** Times that more than the limit was spent and reserved, or less was spent than before by a gateway that had not died. */
  violations = 0;
  latest: Look | null = null;
  #spentBefore = 0;
  readonly #over = new AbortController();
  readonly #ended: Promise<void>;

  constructor(url: string, token: string) {
    this.#ended = this.#watch(url, token);
  }

  /** Resolves with the first look at which `holds`; rejects after `msMax`. */
  async until(holds: (look: Look) => boolean, msMax: number): Promise<Look> {
    const startedMs = performance.now();
    while (performance.now() - startedMs < msMax) {
      if (this.latest !== null && holds(this.latest)) return this.latest;
      await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
    }
    throw new Error(`waited ${msMax} ms for the budget to change; it was last ${JSON.stringify(this.latest)}`);
  }

  async stop(): Promise<void> {
    this.#over.abort();
    await this.#ended;
  }

  async #watch(url: string, token: string): Promise<void> {
    while (!this.#over.signal.aborted) {
      try {
        this.#note(await look(url, token));
      } catch {
        // The gateway is down: that is part of the storm.
        this.latest = null;
        // A settlement that a crash forgot is a reservation again, so less may be spent than before.
        this.#spentBefore = 0;
      }
      await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
    }
  }

  #note(seen: Look): void {
    this.looks += 1;
    this.latest = seen;
    const committed = seen.spent + seen.reserved;
    this.committedMax = Math.max(this.committedMax, committed);
    if (committed > (seen.limit ?? Infinity) || seen.spent < this.#spentBefore) this.violations += 1;
    this.#spentBefore = seen.spent;
  }
}
