/** Finds the text that a call refers to, and how much of its reservation it needs. Reads no text. */
import type { CallBody, CallFacts, PlacedContext } from "../call.ts";
import type { Reason } from "../errors.ts";
import { CONTEXT_RANGE_BYTES_MAX, CONTEXT_SEPARATOR } from "../limits.ts";
import type { Chunk } from "./split.ts";
import { TextRanges, type MeasuredRange } from "./text-index.ts";
import type { ContextReference, IndexedContext, Split } from "./types.ts";

/** A text of a call: where its executor reads it, and what it adds to the call's facts. */
export type ResolvedContext = { placed: PlacedContext } & Pick<MeasuredRange, "bytesMax" | "tokensMax">;

type Resolved<T> = { ok: true; value: T } | { ok: false; reason: Reason };

/** The contexts that a request refers to, and the chunks of those that it splits. */
export class KnownContexts {
  readonly #contexts = new Map<string, IndexedContext & { ranges: TextRanges }>();
  readonly #chunks = new Map<string, readonly Chunk[]>();
  /** A default of a batch is one reference for all its calls. */
  readonly #resolved = new WeakMap<ContextReference, Resolved<ResolvedContext>>();

  add(context: IndexedContext): void {
    const { record, index } = context;
    this.#contexts.set(record.id, { ...context, ranges: new TextRanges(index, record.chars) });
  }

  addChunks(id: string, split: Split, chunks: readonly Chunk[]): void {
    this.#chunks.set(splitName(id, split), chunks);
  }

  hasChunks(id: string, split: Split): boolean {
    return this.#chunks.has(splitName(id, split));
  }

  chunksOf(id: string, split: Split): readonly Chunk[] {
    return this.#chunks.get(splitName(id, split)) ?? [];
  }

  /** The text of a reference. `param`: the field that has it. */
  resolve(reference: ContextReference, param: string): Resolved<ResolvedContext> {
    const known = this.#resolved.get(reference);
    if (known !== undefined) return known;
    const resolved = this.#find(reference, param);
    this.#resolved.set(reference, resolved);
    return resolved;
  }

  #find(reference: ContextReference, param: string): Resolved<ResolvedContext> {
    const { id, place } = reference;
    const context = this.#contexts.get(id);
    if (context === undefined) return { ok: false, reason: noContext(id) };
    const { record, ranges } = context;
    const range = this.#rangeOf(reference, record.chars, param);
    if (!range.ok) return range;
    const { from, to, skip, take, bytesMax, tokensMax } = ranges.measure(range.value.from, range.value.to);
    if (to - from > CONTEXT_RANGE_BYTES_MAX) {
      const what = "the text of a context that one call takes";
      return { ok: false, reason: { reason: "payload_too_large", what, bytesMax: CONTEXT_RANGE_BYTES_MAX, param } };
    }
    const object = record.object === null ? {} : { object: record.object };
    const cut = take === null ? {} : { skip, take };
    return { ok: true, value: { placed: { id, ...object, from, to, ...cut, place }, bytesMax, tokensMax } };
  }

  #rangeOf({ id, range, chunk }: ContextReference, chars: number, param: string): Resolved<Chunk> {
    if (chunk !== undefined) {
      const chunks = this.chunksOf(id, chunk.split);
      const found = chunks[chunk.number];
      if (found !== undefined) return { ok: true, value: found };
      return invalid(`${param}.chunk`, `is ${chunk.number}, but ${id} has ${chunks.length} chunks, counted from 0`);
    }
    const { from, to: end } = range ?? { from: 0, to: null };
    const to = end ?? chars;
    if (from > to) return invalid(`${param}.from`, `is ${from}, behind the end of the range (${to})`);
    if (to <= chars) return { ok: true, value: { from, to } };
    return invalid(`${param}.to`, `is ${to}, but ${id} has ${chars} characters`);
  }
}

/** The call with its text placed. */
export function withContext<Call extends { body: CallBody; facts: CallFacts }>(
  call: Call,
  { placed, bytesMax, tokensMax }: ResolvedContext,
  times = 1,
): Call {
  const added = bytesMax * times + CONTEXT_SEPARATOR.length;
  const { promptBytes, textTokensMax = promptBytes } = call.facts;
  const facts: CallFacts = {
    ...call.facts,
    promptBytes: promptBytes + added,
    // Before messages it is a message of its own, and so may be a system message.
    messageCount: call.facts.messageCount + 1,
    contextBytes: bytesMax * times,
  };
  const tokens = textTokensMax + tokensMax * times + CONTEXT_SEPARATOR.length;
  if (tokens < facts.promptBytes) facts.textTokensMax = tokens;
  else delete facts.textTokensMax;
  return { ...call, body: { ...call.body, context: placed }, facts };
}

/** A context that the run does not have, or not any more; so is another run's. */
export function noContext(id: string): Reason {
  return { reason: "not_found", what: `context ${id}` };
}

/** A name of a split of a context. */
export function splitName(id: string, { by, size, overlap }: Split): string {
  return `${id} ${by} ${size} ${overlap}`;
}

function invalid(param: string, problem: string): { ok: false; reason: Reason } {
  return { ok: false, reason: { reason: "invalid_request", message: `${param}: ${problem}`, param } };
}
