/**
 * Reads a form and writes its file to R2. The file is staged as it arrives, because the fields about it may be behind
 * it; the caller looks at the whole form and then commits the file or discards it.
 */
import type { Reason } from "../../errors.ts";
import { Refusal } from "../../errors.ts";
import { FormReader } from "../../files/multipart.ts";
import { boundaryOf } from "../../files/part-header.ts";
import { stageFile, type StagedFile } from "../../files/r2-upload.ts";
import { streamSource, type ByteSource, type StreamSource } from "../../files/source.ts";
import { REFUSED_BODY_BYTES_MAX } from "../../limits.ts";

/** A form that was read to its end. `file` null = the form has no file; else `commit` or `discard` must follow. */
export type StagedForm = {
  fields: ReadonlyMap<string, string>;
  file: (StagedFile & { filename: string | null }) | null;
};

export type FormPlan = {
  /** Name of the part that is the file. */
  name: string;
  /** Where the file is to lie in the bucket. */
  key: string;
  bytesMax: number;
  /** Sees every byte of the file on the way. */
  see: (bytes: Uint8Array) => void;
};

/** Reads a request's form. What it refuses has left nothing behind. */
export async function stageForm(request: Request, bucket: R2Bucket, plan: FormPlan): Promise<StagedForm> {
  const { body, headers } = request;
  const boundary = boundaryOf(headers.get("content-type"));
  if (!boundary.ok) throw new Refusal(boundary.reason);
  if (body === null) throw new Refusal({ reason: "invalid_request", message: "the form is empty", param: null });
  const source = streamSource(body, "the connection broke before the whole form had arrived");
  const reader = new FormReader(source, { boundary: boundary.boundary, files: [plan.name] });
  const form = await readParts(reader, bucket, plan);
  if (form.ok) return form.value;
  await drain(source);
  throw new Refusal(form.reason);
}

async function readParts(
  reader: FormReader,
  bucket: R2Bucket,
  { name, key, bytesMax, see }: FormPlan,
): Promise<{ ok: true; value: StagedForm } | { ok: false; reason: Reason }> {
  const fields = new Map<string, string>();
  let file: StagedForm["file"] = null;
  const refuse = async (reason: Reason) => {
    await file?.discard();
    return { ok: false as const, reason };
  };
  for (;;) {
    const part = await reader.next();
    if (part.kind === "fault") return await refuse(part.reason);
    if (part.kind === "end") return { ok: true, value: { fields, file } };
    if (part.kind === "field") {
      if (!fields.has(part.name)) fields.set(part.name, part.value);
      continue;
    }
    if (file !== null) {
      return await refuse({ reason: "invalid_request", message: `the form has more than one "${name}"`, param: name });
    }
    const staged = await stageFile(bucket, watched(part.body, see), { key, bytesMax, param: name });
    if (!staged.ok) return staged;
    file = { ...staged, filename: part.filename };
  }
}

/** The same bytes, seen as they pass. */
export function watched(source: ByteSource, see: (bytes: Uint8Array) => void): ByteSource {
  return {
    async read() {
      const read = await source.read();
      if (read.kind === "bytes") see(read.bytes);
      return read;
    },
  };
}

/** Most clients read no answer before they have sent their body, so some of a refused one's rest is read. */
async function drain(source: StreamSource): Promise<void> {
  for (let bytes = 0; bytes < REFUSED_BODY_BYTES_MAX;) {
    const read = await source.read();
    if (read.kind !== "bytes") return;
    bytes += read.bytes.length;
  }
  await source.cancel();
}
