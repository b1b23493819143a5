/**
 * Where texts were cut before: a client quotes the chunks of a text, then calls with them, and then with other prompts. The id of a context is
 * the digest of its text, so what is kept of one is right for every run that has it. Whether a run has it is looked up before, each time.
 */
import { SPLITS_KEPT_MAX } from "../limits.ts";
import { BoundedMap } from "../renewed/bounded-map.ts";
import { splitName } from "./resolve.ts";
import type { Chunk } from "./split.ts";
import type { Split } from "./types.ts";

export class KeptSplits {
  /** By context and split, the beginnings and ends of all chunks in one array: it takes a fifth of what objects do. */
  readonly #kept = new BoundedMap<string, Uint32Array>(SPLITS_KEPT_MAX);

  /** The chunks of a context under a split; null = they are not known. */
  of(contextId: string, split: Split): Chunk[] | null {
    const name = splitName(contextId, split);
    const kept = this.#kept.get(name);
    if (kept === undefined) return null;
    this.#kept.set(name, kept);
    const chunks: Chunk[] = [];
    for (let at = 0; at < kept.length; at += 2) chunks.push({ from: kept[at] ?? 0, to: kept[at + 1] ?? 0 });
    return chunks;
  }

  /** Keeps the chunks of a context under a split. What was not used for the longest time goes. */
  keep(contextId: string, split: Split, chunks: readonly Chunk[]): void {
    const kept = new Uint32Array(2 * chunks.length);
    for (const [number, { from, to }] of chunks.entries()) {
      kept[2 * number] = from;
      kept[2 * number + 1] = to;
    }
    this.#kept.set(splitName(contextId, split), kept);
  }
}
