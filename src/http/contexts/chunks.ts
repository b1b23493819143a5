/** The chunks of a stored text. Its lines are read once, for all ways to cut it. */
import { KeptLines, looksAtLines } from "../../contexts/kept-lines.ts";
import { LineReader } from "../../contexts/line-reader.ts";
import type { TextLines } from "../../contexts/lines.ts";
import { noContext } from "../../contexts/resolve.ts";
import { chunksByChars, LineSplit, type Chunk } from "../../contexts/split.ts";
import type { ContextRecord, Split } from "../../contexts/types.ts";
import { invalid } from "../../contract/errors.ts";
import { Refusal } from "../../errors.ts";
import {
  FILE_PAGE_BYTES,
  ITEMS_PER_BATCH_MAX,
  SLICE_PIECE_CHARS,
  SPLIT_PIECE_BYTES,
  TEXT_READ_LOOK_MS,
} from "../../limits.ts";
import type { Objects } from "../../objects/address.ts";
import { readText } from "../../objects/clients/context-text.ts";
import { inSlices, ISOLATE, pause, SliceCount, type Sliced } from "../../text/bytes/slices.ts";

/** The lines of texts that were cut before, for all runs that use this isolate. */
const keptLines = new KeptLines();

/** The chunks of a context that the run has. Throws a Refusal. */
export async function chunksOf(objects: Objects, runId: string, record: ContextRecord, split: Split): Promise<Chunk[]> {
  const chunks: Chunk[] = [];
  const add = (chunk: Chunk): void => {
    if (chunks.length === ITEMS_PER_BATCH_MAX) {
      const problem = `cuts ${record.id} into more than ${ITEMS_PER_BATCH_MAX} chunks; give a larger size`;
      throw new Refusal(invalid("split.size", problem).reason);
    }
    chunks.push(chunk);
  };
  if (split.by === "chars") for (const chunk of chunksByChars(record.chars, split)) add(chunk);
  else await inSlices(new LineSplit(await linesOf(objects, runId, record, split), split, add).chunks(), pause);
  return chunks;
}

/** The lines of a context: those that an earlier request has found, or another one finds now. */
async function linesOf(objects: Objects, runId: string, record: ContextRecord, split: Split): Promise<TextLines> {
  const { id } = record;
  const { now, sleep } = ISOLATE;
  for (;;) {
    const kept = keptLines.of(id, split);
    if (kept !== null) return kept;
    if (keptLines.beginReading(id, split, now())) break;
    // What another request promises is lost with its client, so it is looked at.
    await sleep(TEXT_READ_LOOK_MS);
  }
  try {
    const lines = await readLines(objects, runId, record, split);
    keptLines.keep(id, split, lines);
    return lines;
  } finally {
    keptLines.endReading(id, split);
  }
}

/** Reads the lines of a context, page by page. */
async function readLines(
  objects: Objects,
  runId: string,
  { id, object, bytes }: ContextRecord,
  split: Split,
): Promise<TextLines> {
  const reading = new PagedLines(looksAtLines(split));
  const goOn = async (): Promise<void> => {
    await pause();
    keptLines.goOnReading(id, split, ISOLATE.now());
  };
  for (let from = 0; from < bytes; from += FILE_PAGE_BYTES) {
    const to = Math.min(bytes, from + FILE_PAGE_BYTES);
    const page = await readText(objects, runId, { id, from, to, ...(object === null ? {} : { object }) });
    if (page === null) throw new Refusal(noContext(id));
    await inSlices(reading.page(page, to === bytes), goOn);
  }
  const lines = reading.end();
  if (lines !== null) return lines;
  throw new Refusal(invalid("split.by", `${id} has too many lines; split it by "chars"`).reason);
}

/** The lines of a text whose bytes come in pages. */
export class PagedLines {
  readonly #reader: LineReader;
  readonly #decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  readonly #slice = new SliceCount();

  /** @param looks Whether it matters what a line is. */
  constructor(looks: boolean) {
    this.#reader = new LineReader(looks);
  }

  /** Takes the next page, in slices: a page may have millions of lines. */
  *page(bytes: Uint8Array, isLast: boolean): Sliced<void> {
    for (let at = 0; at < bytes.length; at += SPLIT_PIECE_BYTES) {
      const isEnd = isLast && at + SPLIT_PIECE_BYTES >= bytes.length;
      const piece = this.#decoder.decode(bytes.subarray(at, at + SPLIT_PIECE_BYTES), { stream: !isEnd });
      const lines = this.#reader.push(piece);
      if (this.#slice.add(piece.length + lines * SLICE_PIECE_CHARS)) yield;
    }
  }

  /** Null = the text has too many lines. */
  end(): TextLines | null {
    return this.#reader.end();
  }
}
