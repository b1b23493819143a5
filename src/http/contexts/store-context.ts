/** Stores a text as a context: read once, as it arrives, so that a large one never is in memory. */
import { contextKey, runFilesOf, type Objects } from "../../objects/address.ts";
import { TextIndexer } from "../../contexts/text-index.ts";
import { invalid } from "../../contract/errors.ts";
import type { ContextRecord } from "../../contexts/types.ts";
import { Refusal, type Reason } from "../../errors.ts";
import { stageFile, type StagedFile } from "../../files/r2-upload.ts";
import { Digest } from "../../files/digest.ts";
import { chainSources, type ByteSource } from "../../files/source.ts";
import {
  CONTEXT_BYTES_MAX,
  CONTEXT_ROW_BYTES_MAX,
  CONTEXT_WRITE_BYTES,
  SLICE_CHARS_MAX,
  TEXT_SLICE_CHARS,
} from "../../limits.ts";
import type { ContextAdded } from "../../objects/methods/file-api.ts";
import type { Refused } from "../../objects/methods/types.ts";
import { pause, SliceCount } from "../../text/bytes/slices.ts";

/** `param`: the field of the request that has the text; null = its body. */
export type NewText = { source: ByteSource; name: string | null; param: string | null };

type Deps = { objects: Objects; runId: string; nowMs: number };

/** Stores a text, or finds the context that has it. Throws a Refusal. */
export async function storeContext({ source, name, param }: NewText, deps: Deps): Promise<ContextAdded> {
  const indexer = new TextIndexer();
  const hash = new Digest("SHA-256");
  const slice = new SliceCount();
  const seen = seenBy(source, async (bytes) => {
    // Its tokens are counted: a slice is as long as one of a prompt.
    if (slice.add((bytes.length * SLICE_CHARS_MAX) / TEXT_SLICE_CHARS)) await pause();
    const fault = indexer.push(bytes);
    if (fault !== null) return invalid(param, fault.message).reason;
    await hash.add(bytes);
    return null;
  });
  const read = await readOrStage(seen, deps, param);
  try {
    const indexed = indexer.end();
    if ("message" in indexed) throw new Refusal(invalid(param, indexed.message).reason);
    const { index, ...sizes } = indexed;
    if (sizes.chars === 0) throw new Refusal(invalid(param, "is empty; expected text").reason);
    const id = `ctx_${(await hash.hex()).slice(0, 32)}`;
    const record: ContextRecord = { id, name, ...sizes, createdAtMs: deps.nowMs, object: read.object };
    const added = await add({ record, index }, read, deps);
    if (!added.ok) throw new Refusal(added.reason);
    return added;
  } catch (error) {
    await read.staged?.discard();
    throw error;
  }
}

type ReadText = { text: Uint8Array; staged: null; object: null } | { text: null; staged: StagedFile; object: string };

async function add(
  context: { record: ContextRecord; index: Uint8Array },
  { text, staged }: ReadText,
  { objects, runId }: Deps,
): Promise<ContextAdded | Refused> {
  const files = runFilesOf(objects, runId);
  if (staged === null) return await files.addContext(context, text);
  const known = await files.context(context.record.id);
  if (known !== null) {
    await staged.discard();
    return { ok: true, record: known.record, isNew: false };
  }
  await files.expectContextObject();
  await staged.commit();
  const added: ContextAdded | Refused = await files.addContext(context, null);
  const { object } = context.record;
  // It is refused, or another request with the same text was faster.
  if ((!added.ok || !added.isNew) && object !== null) await objects.FILES?.delete(contextKey(runId, object));
  return added;
}

/** Reads a text that fits a row; what is longer goes to R2. */
async function readOrStage(source: ByteSource, { objects, runId }: Deps, param: string | null): Promise<ReadText> {
  const first = await readUpTo(source, CONTEXT_ROW_BYTES_MAX);
  if (first.isWhole) return { text: first.bytes, staged: null, object: null };
  const { FILES: bucket } = objects;
  if (bucket === undefined) {
    const message = `this gateway has no R2 bucket bound as FILES, so a context has at most ${CONTEXT_ROW_BYTES_MAX} bytes`;
    throw new Refusal({ reason: "misconfigured", variable: "FILES", message });
  }
  const object = crypto.randomUUID();
  const all = chainSources([() => bytesSource(first.bytes), () => source]);
  const key = contextKey(runId, object);
  const staged = await stageFile(bucket, all, { key, bytesMax: CONTEXT_BYTES_MAX, param: param ?? "text" });
  if (!staged.ok) throw new Refusal(staged.reason);
  return { text: null, staged, object };
}

/** The first bytes of a source: all of them, or more than `bytesMax`. */
async function readUpTo(source: ByteSource, bytesMax: number): Promise<{ bytes: Uint8Array; isWhole: boolean }> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  let isWhole = false;
  while (bytes <= bytesMax && !isWhole) {
    const read = await source.read();
    if (read.kind === "fault") throw new Refusal(read.reason);
    if (read.kind === "end") isWhole = true;
    else {
      // The source may write to its buffer again.
      pieces.push(read.bytes.slice());
      bytes += read.bytes.length;
    }
  }
  const joined = new Uint8Array(bytes);
  let at = 0;
  for (const piece of pieces) {
    joined.set(piece, at);
    at += piece.length;
  }
  return { bytes: joined, isWhole };
}

/** Bytes in memory as a source, in pieces that are indexed one by one. */
export function bytesSource(bytes: Uint8Array): ByteSource {
  let at = 0;
  return {
    read() {
      if (at === bytes.length) return Promise.resolve({ kind: "end" });
      const piece = bytes.subarray(at, at + CONTEXT_WRITE_BYTES);
      at += piece.length;
      return Promise.resolve({ kind: "bytes", bytes: piece });
    },
  };
}

/** The same bytes, seen as they pass; what `see` refuses is a fault. */
function seenBy(source: ByteSource, see: (bytes: Uint8Array) => Promise<Reason | null>): ByteSource {
  return {
    async read() {
      const read = await source.read();
      const reason = read.kind === "bytes" ? await see(read.bytes) : null;
      return reason === null ? read : { kind: "fault", reason };
    },
  };
}
