/** A Prometheus of the simulation: it reads `/metrics` while everything fails, and at the end, when the sum must be exact. */
import { BROKEN, LEFT } from "./worker.ts";
import { ADMIN_KEY, type World } from "./world.ts";

/** Whom it reads. */
type Read = Pick<World, "request">;

/** The dollars of all runs by `/metrics`, nano-USD; null = it did not reply, or says that something is missing in the reply. */
async function read(world: Read): Promise<number | null> {
  const reply = await world.request({ method: "GET", path: "/metrics", token: ADMIN_KEY });
  if (reply === BROKEN || reply === LEFT || reply.status !== 200) return null;
  const { text } = reply;
  if (text.includes("fanout_gate_unread{") || !text.includes("\nfanout_unread_runs 0\n")) return null;
  const values = [...text.matchAll(/^fanout_cost_usd_total\{.*\} (\S+)$/gm)];
  return values.reduce((sum, [, value]) => sum + Math.round(Number(value) * 1e9), 0);
}

export class Scrapes {
  readonly #world: Read;
  readonly #violated: (what: string) => void;
  #shownNanoUsd = 0;

  constructor(world: Read, violated: (what: string) => void) {
    this.#world = world;
    this.#violated = violated;
  }

  /**
   * Reads once; what was shown before never becomes less. Looks may overlap: one shows what a gate had when it read that gate, which
   * may be less than another look was shown that began later and ended sooner.
   */
  async look(): Promise<void> {
    const shownNanoUsd = this.#shownNanoUsd;
    const nanoUsd = await read(this.#world);
    if (nanoUsd === null) return;
    if (nanoUsd < shownNanoUsd) this.#violated(`/metrics shows ${nanoUsd} after ${shownNanoUsd} nano-USD`);
    this.#shownNanoUsd = Math.max(this.#shownNanoUsd, nanoUsd);
  }

  /** Reads when all runs have ended: it shows what they have spent. */
  async end(spentNanoUsd: number): Promise<void> {
    const nanoUsd = await read(this.#world);
    if (nanoUsd !== spentNanoUsd)
      this.#violated(`/metrics shows ${nanoUsd}, all runs have spent ${spentNanoUsd} nano-USD`);
  }
}
