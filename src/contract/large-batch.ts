/**
 * The body of a batch, from bytes to calls. A large one is checked and read piece by piece, twice: once before anything
 * of it is stored or sent, and once more while it is. Only its bytes are in memory, outside the heap.
 */
import type { ContextReference } from "../contexts/types.ts";
import { ITEMS_PER_BATCH_MAX, LARGE_BODY_BYTES_MIN, LARGE_BODY_PIECE_BYTES } from "../limits.ts";
import type { CallSettings } from "./call-options.ts";
import { batchItem, itemCall, namesOf, noteContext, parseBatch, parseEnvelope, promptCall, tiersOf } from "./batch.ts";
import { PresentFields } from "./present-fields.ts";
import type { BatchCall, BatchRequest, PromptReader } from "./batch.ts";
import { depthFault, jsonOf } from "./body.ts";
import type { Parsed } from "./errors.ts";
import { splitList, type SplitList } from "../json/split-list.ts";

/** A byte order mark is allowed only at the start of a body, which no piece is. */
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** How the body of a batch is read: as the body of `/batch`, and which prompts it may have. */
export type BatchReading = { nativeOf: (value: unknown) => Parsed<unknown>; promptOf: PromptReader };

const NATIVE: BatchReading = { nativeOf: (value) => ({ ok: true, value }), promptOf: promptCall };

/** A batch of any size, or the first reason to refuse it. The bytes must not change while its calls are read. */
export function readBatch(bytes: Uint8Array, reading = NATIVE): Parsed<BatchRequest> {
  const tooDeep = depthFault(bytes);
  if (tooDeep !== null) return tooDeep;
  const large = bytes.length < LARGE_BODY_BYTES_MIN ? null : readPieces(bytes, LARGE_BODY_PIECE_BYTES, reading);
  if (large !== null) return { ok: true, value: large };
  const body = jsonOf(bytes);
  const native = body.ok ? reading.nativeOf(body.value) : body;
  return native.ok ? parseBatch(native.value, reading.promptOf) : native;
}

/**
 * The batch, read in pieces; null if that is not possible or the batch must be refused: then `parseBatch` finds the reason.
 * So there is one wording of every refusal, and this needs to be right about what it accepts only.
 */
export function readPieces(bytes: Uint8Array, pieceBytesMin: number, reading = NATIVE): BatchRequest | null {
  const list = splitList(bytes, { fields: ["prompts", "items"], elementsMax: ITEMS_PER_BATCH_MAX, pieceBytesMin });
  if (list === null) return null;
  const json = jsonOf(list.envelope);
  const native = json.ok ? reading.nativeOf(json.value) : json;
  const envelope = native.ok ? parseEnvelope(native.value) : native;
  // One with `over` is short, but for what its prompt may be.
  if (!envelope.ok || envelope.value.shared.contexts.over !== null) return null;
  const { settings, shared } = envelope.value;
  const ids: (string | null)[] = [];
  let hasTiers = false;
  const named = new Map<string, ContextReference>();
  for (const call of readCalls(list, settings, reading.promptOf)) {
    if (call === null) return null;
    ids.push(call.id);
    noteContext(named, call.context);
    hasTiers ||= call.facts.tier !== undefined;
  }
  const calls = {
    length: ids.length,
    *[Symbol.iterator]() {
      for (const call of readCalls(list, settings, reading.promptOf)) {
        if (call === null) throw new Error("the bytes of a batch changed while it was read");
        yield call;
      }
    },
  };
  return { ...shared, ...tiersOf(shared, hasTiers), calls, ids: namesOf(ids), contexts: { ...shared.contexts, named } };
}

/** Parses every element anew and keeps none; null = this one, or its whole piece, must be refused. */
function* readCalls(
  { field, pieces }: SplitList,
  settings: CallSettings,
  promptOf: PromptReader,
): Generator<BatchCall | null> {
  let index = 0;
  for (const piece of pieces) {
    const elements = parsePiece(piece);
    if (elements === null || (elements.length === 0 && pieces.length > 1)) return yield null;
    for (const element of elements) {
      if (field === "items") yield readItem(element, index, settings);
      else {
        const call = promptOf(element, index, settings);
        yield call.ok ? call.value : null;
      }
      index += 1;
    }
  }
}

type ItemField = keyof typeof batchItem.shape;
const itemFields = new PresentFields(batchItem, (mask: { [Name in ItemField]?: true }) => batchItem.pick(mask));

function readItem(element: unknown, index: number, settings: CallSettings): BatchCall | null {
  const item = itemFields.safeParse(element);
  const call = item.success ? itemCall(item.data, index, settings) : null;
  return call !== null && call.ok ? call.value : null;
}

function parsePiece(piece: Uint8Array): unknown[] | null {
  try {
    return JSON.parse(`[${decoder.decode(piece)}]`);
  } catch {
    return null;
  }
}
