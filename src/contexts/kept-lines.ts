/**
 * The lines of texts that were cut before: a client quotes the chunks of a text, calls with them, and cuts it in other ways. The id of a context
 * is the digest of its text, so what is kept of one is right for every run that has it. Whether a run has it is looked up before, each time.
 */
import { TEXT_LINES_BYTES_MAX, TEXT_LINES_BYTES_MIN, TEXT_READER_GONE_MS, TEXT_READERS_MAX } from "../limits.ts";
import { BoundedMap } from "../renewed/bounded-map.ts";
import { RenewedMap } from "../renewed/map.ts";
import { LEVELS, type TextLines } from "./lines.ts";
import type { Split } from "./types.ts";

/** Whether it matters for a split what a line is. All lines are alike for one by lines, which is so faster. */
export function looksAtLines({ by }: Split): boolean {
  return LEVELS[by] > LEVELS.lines;
}

export class KeptLines {
  /** By context, and whether its lines were looked at. The one that was used last comes last. */
  readonly #kept = new RenewedMap<string, TextLines>();
  #bytes = 0;
  /** Who reads a text now, by its last sign of life, ms. One whose client has left may never end its reading. */
  readonly #readers = new BoundedMap<string, number>(TEXT_READERS_MAX);

  /** The lines of a context for a split; null = they are not known. */
  of(contextId: string, split: Split): TextLines | null {
    const name = nameOf(contextId, split);
    const kept = this.#kept.get(name);
    if (kept === undefined) return null;
    this.#kept.delete(name);
    this.#kept.set(name, kept);
    return kept;
  }

  /** True if the caller is to read the text: nobody does, or who did has gone. */
  beginReading(contextId: string, split: Split, nowMs: number): boolean {
    const seenMs = this.#readers.get(nameOf(contextId, split));
    if (seenMs !== undefined && Math.abs(nowMs - seenMs) < TEXT_READER_GONE_MS) return false;
    this.goOnReading(contextId, split, nowMs);
    return true;
  }

  /** The caller reads the text still. */
  goOnReading(contextId: string, split: Split, nowMs: number): void {
    this.#readers.set(nameOf(contextId, split), nowMs);
  }

  endReading(contextId: string, split: Split): void {
    this.#readers.delete(nameOf(contextId, split));
  }

  /** Keeps the lines of a context. What was not used for the longest time goes. */
  keep(contextId: string, split: Split, lines: TextLines): void {
    const name = nameOf(contextId, split);
    this.#drop(name);
    this.#kept.set(name, lines);
    this.#bytes += bytesOf(lines);
    for (const oldest of this.#kept.keys()) {
      if (this.#bytes <= TEXT_LINES_BYTES_MAX) return;
      this.#drop(oldest);
    }
  }

  #drop(name: string): void {
    const kept = this.#kept.get(name);
    if (kept !== undefined) this.#bytes -= bytesOf(kept);
    this.#kept.delete(name);
  }
}

/** The memory that lines count as: those of a short text take more than their bytes. */
function bytesOf({ packed }: TextLines): number {
  return Math.max(packed.length, TEXT_LINES_BYTES_MIN);
}

function nameOf(contextId: string, split: Split): string {
  return `${contextId} ${looksAtLines(split) ? "looked at" : "alike"}`;
}
