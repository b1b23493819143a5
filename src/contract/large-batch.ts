/**
 * The body of a batch, from bytes to calls. A large one is checked and read piece by piece, twice: once before anything
 * of it is stored or sent, and once more while it is. Only its bytes are in memory, outside the heap.
 */
import { parseRelayed } from "./relayed-numbers.ts";
import type { ContextReference } from "../contexts/types.ts";
import { isLabelled } from "../labels.ts";
import { ITEMS_PER_BATCH_MAX, LARGE_BODY_BYTES_MIN, LARGE_BODY_PIECE_BYTES, SCAN_SLICE_BYTES } from "../limits.ts";
import type { CallSettings } from "./call-options.ts";
import {
  batchItem,
  batchParsing,
  itemCall,
  namesOf,
  noteContext,
  envelopeParsing,
  labelledOf,
  longItemCall,
  longPromptCall,
  promptCall,
  tiersOf,
  toolsOf,
} from "./batch.ts";
import { LongPrompts } from "./long-prompts.ts";
import { PlainPrompts } from "./plain-prompts.ts";
import { PresentFields } from "./present-fields.ts";
import type { BatchCall, BatchRequest, PromptReader } from "./batch.ts";
import { jsonOf, shapeLook } from "./body.ts";
import { zodReason, type Parsed } from "./errors.ts";
import { atOnce, SliceCount, type Sliced } from "../text/bytes/slices.ts";
import { splittingList, type SplitList } from "../text/json/split-list.ts";
import { atFirstUse } from "../at-first-use.ts";

/** A byte order mark is allowed only at the start of a body, which no piece is. */
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** How the body of a batch is read: as the body of `/batch`, and which prompts it may have. */
export type BatchReading = { nativeOf: (value: unknown) => Parsed<unknown>; promptOf: PromptReader };

const NATIVE: BatchReading = { nativeOf: (value) => ({ ok: true, value }), promptOf: promptCall };

/** A batch of any size, or the first reason to refuse it. The bytes must not change while its calls are read. */
export function readBatch(bytes: Uint8Array, reading = NATIVE): Parsed<BatchRequest> {
  return atOnce(batchReading(bytes, reading));
}

/** The same in slices. */
export function* batchReading(bytes: Uint8Array, reading = NATIVE): Sliced<Parsed<BatchRequest>> {
  if (bytes.length >= LARGE_BODY_BYTES_MIN) {
    const tooDeep = yield* shapeLook(bytes, Infinity);
    if (tooDeep !== null) return tooDeep;
    yield;
    const large = yield* piecesReading(bytes, LARGE_BODY_PIECE_BYTES, reading);
    if (large !== null) return large;
    yield;
  }
  const body = jsonOf(bytes);
  const native = body.ok ? reading.nativeOf(body.value) : body;
  return native.ok ? yield* batchParsing(native.value, reading.promptOf) : native;
}

/**
 * The batch, read in pieces, or the first call of it that is refused; null if that is not possible, or something else must be
 * refused: then `parseBatch` finds the reason. So this needs to be right about what it accepts only.
 */
export function readPieces(bytes: Uint8Array, pieceBytesMin: number, reading = NATIVE): Parsed<BatchRequest> | null {
  return atOnce(piecesReading(bytes, pieceBytesMin, reading));
}

function* piecesReading(
  bytes: Uint8Array,
  pieceBytesMin: number,
  reading: BatchReading,
): Sliced<Parsed<BatchRequest> | null> {
  const options = { fields: ["prompts", "items"], elementsMax: ITEMS_PER_BATCH_MAX, pieceBytesMin };
  const list = yield* splittingList(bytes, { ...options, sliceBytes: SCAN_SLICE_BYTES });
  if (list === null) return null;
  yield;
  const json = jsonOf(list.envelope);
  const native = json.ok ? reading.nativeOf(json.value) : json;
  const envelope = native.ok ? yield* envelopeParsing(native.value) : native;
  // One with `over` is short, but for what its prompt may be.
  if (!envelope.ok || envelope.value.shared.contexts.over !== null) return null;
  const { settings, shared } = envelope.value;
  const ids: (string | null)[] = [];
  let hasTiers = false;
  let areToolsUsed = false;
  let hasLabels = false;
  const named = new Map<string, ContextReference>();
  const long = new LongPrompts();
  const pieces = new PieceReader(list, settings, reading.promptOf, long);
  const slice = new SliceCount();
  for (const piece of list.pieces) {
    const calls = yield* pieces.read(piece);
    if (calls === null || !calls.ok) return calls;
    for (const call of calls.value) {
      ids.push(call.id);
      noteContext(named, call.context);
      hasTiers ||= call.facts.tier !== undefined;
      areToolsUsed ||= call.facts.toolUse !== undefined;
      hasLabels ||= isLabelled(call.facts);
    }
    if (slice.add(piece.length)) yield;
  }
  const calls = {
    length: ids.length,
    *[Symbol.iterator]() {
      const again = new PieceReader(list, settings, reading.promptOf, long);
      for (const piece of list.pieces) {
        const calls = atOnce(again.read(piece));
        if (calls === null || !calls.ok) throw new Error("the bytes of a batch changed while it was read");
        yield* calls.value;
      }
    },
  };
  const request = {
    ...shared,
    ...tiersOf(shared, hasTiers),
    ...toolsOf(shared, areToolsUsed),
    ...labelledOf(hasLabels),
    calls,
    ids: namesOf(ids),
  };
  return { ok: true, value: { ...request, contexts: { ...shared.contexts, named } } };
}

/** Reads the pieces of a list in their order, and keeps none of them. */
class PieceReader {
  readonly #list: SplitList;
  readonly #settings: CallSettings;
  readonly #promptOf: PromptReader;
  readonly #plain: PlainPrompts;
  readonly #long: LongPrompts;
  /** The index of the first call of the next piece. */
  #first = 0;

  /** @param long Prompts that were measured before need no slices. */
  constructor(list: SplitList, settings: CallSettings, promptOf: PromptReader, long: LongPrompts) {
    this.#list = list;
    this.#settings = settings;
    this.#promptOf = promptOf;
    this.#plain = new PlainPrompts(settings);
    this.#long = long;
  }

  /** The calls of the next piece, or the first reason to refuse one; null = it is no JSON. */
  *read(piece: Uint8Array): Sliced<Parsed<BatchCall[]> | null> {
    const elements = parsePiece(piece);
    if (elements === null || (elements.length === 0 && this.#list.pieces.length > 1)) return null;
    const calls: BatchCall[] = [];
    for (const [at, element] of elements.entries()) {
      const call = yield* this.#call(element, this.#first + at);
      if (!call.ok) return call;
      calls.push(call.value);
    }
    this.#first += elements.length;
    return { ok: true, value: calls };
  }

  *#call(element: unknown, index: number): Sliced<Parsed<BatchCall>> {
    if (this.#list.field === "prompts") {
      const readsPlain = this.#promptOf === promptCall;
      const long = readsPlain ? longPromptCall(element, index, this.#settings, this.#long) : null;
      return long === null ? this.#promptOf(element, index, this.#settings, this.#plain) : yield* long;
    }
    const item = itemFields().safeParse(element);
    if (!item.success) return { ok: false, reason: zodReason(item.error, ["items", index]) };
    const long = longItemCall(item.data, index, this.#settings, this.#long);
    return long === null ? itemCall(item.data, index, this.#settings) : yield* long;
  }
}

type ItemField = keyof ReturnType<typeof batchItem>["shape"];
const itemFields = atFirstUse(
  () => new PresentFields(batchItem(), (mask: { [Name in ItemField]?: true }) => batchItem().pick(mask)),
);

function parsePiece(piece: Uint8Array): unknown[] | null {
  try {
    const calls = parseRelayed(`[${decoder.decode(piece)}]`);
    return Array.isArray(calls) ? calls : null;
  } catch {
    return null;
  }
}
