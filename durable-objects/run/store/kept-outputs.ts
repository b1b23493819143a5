/**
 * Outputs of graphs that are likely to be read soon, in bounded memory: most dependents of a slot start shortly after it has
 * ended, and a read of its row costs several times as much as all else that inserting it takes.
 */
import { OUTPUTS_KEPT_CHARS_MAX } from "../../../src/limits.ts";
import { RenewedMap } from "../../../src/renewed/map.ts";

export class KeptOutputs {
  /** By slot, least recently read first; null for a slot that ended without an output. */
  readonly #texts = new RenewedMap<number, string | null>();
  #chars = 0;

  /** The output of a slot that has ended; undefined if it is not kept. */
  get(slotId: number): string | null | undefined {
    const text = this.#texts.get(slotId);
    if (text === undefined) return undefined;
    this.#texts.delete(slotId);
    this.#texts.set(slotId, text);
    return text;
  }

  /** Keeps the output of a slot that has ended: nothing changes it any more. */
  keep(slotId: number, text: string | null): void {
    if (this.#texts.has(slotId)) return;
    this.#texts.set(slotId, text);
    this.#chars += charsOf(text);
    for (const [oldest, dropped] of this.#texts) {
      if (this.#chars <= OUTPUTS_KEPT_CHARS_MAX) break;
      this.#texts.delete(oldest);
      this.#chars -= charsOf(dropped);
    }
  }

  clear(): void {
    this.#texts.clear();
    this.#chars = 0;
  }
}

/** Characters that an entry counts for beside its text: a number and its place in a map. */
const ENTRY_CHARS = 50;

function charsOf(text: string | null): number {
  return ENTRY_CHARS + (text?.length ?? 0);
}
