/** Uploads a file: in one form if it is small enough, otherwise in parts. Only a few pieces of it are in memory at a time. */
import { createReadStream } from "node:fs";
import { Readable } from "node:stream";
import { idOf, segment, type Api, type Body } from "./api.ts";
import { Failure } from "../../failure.ts";
import { isObject, memberOf } from "../../text/json.ts";
import { Problem } from "./problem.ts";

/** Largest file that is sent in one form, bytes: below the request limit of every Cloudflare plan. */
const FORM_BYTES_MAX = 64 * 1024 * 1024;
/** Size of a part, bytes: half of what the API allows, so that less is repeated after a lost connection. */
const PART_BYTES = 32 * 1024 * 1024;
const READ_BYTES = 256 * 1024;
const FILENAME = "batch.jsonl";
const TYPE = "application/jsonl";
/** Never occurs in a batch file: no line of JSON Lines begins with two dashes. */
const BOUNDARY = "fanout-4f1d6a0c9be84f6d8f1a";

/**
 * Uploads the file and returns its id.
 * @param options `sent` gets the bytes sent so far.
 */
export async function uploadFile(
  api: Api,
  file: { path: string; bytes: number; md5: string },
  {
    sent,
    formBytesMax = FORM_BYTES_MAX,
    partBytes = PART_BYTES,
  }: { sent: (bytes: number) => void; formBytesMax?: number; partBytes?: number },
) {
  const asForm = async () => {
    const fields = { purpose: "batch" };
    return idOf(await api.post("/files", formOf(fields, { ...file, name: "file", start: 0, sent })));
  };
  if (file.bytes <= formBytesMax) {
    const id = await unlessStatus(413, asForm);
    return id ?? (await uploadParts(api, file, { sent, partBytes }));
  }
  // A server without uploads in parts may accept a large file in one form.
  return (await unlessStatus(404, () => uploadParts(api, file, { sent, partBytes }))) ?? (await asForm());
}

async function unlessStatus<T>(status: number, action: () => Promise<T>): Promise<T | null> {
  try {
    return await action();
  } catch (error) {
    if (error instanceof Problem && error.status === status) return null;
    throw error;
  }
}

async function uploadParts(
  api: Api,
  { path, bytes, md5 }: { path: string; bytes: number; md5: string },
  { sent, partBytes }: { sent: (bytes: number) => void; partBytes: number },
) {
  const about = { filename: FILENAME, purpose: "batch", bytes, mime_type: TYPE };
  const upload = `/uploads/${segment(idOf(await api.postJson("/uploads", about)))}`;
  const partIds = [];
  for (let start = 0; start < bytes; start += partBytes) {
    const part = { path, name: "data", start, bytes: Math.min(partBytes, bytes - start), sent };
    partIds.push(idOf(await api.post(`${upload}/parts`, formOf({}, part))));
  }
  const file = memberOf(await api.postJson(`${upload}/complete`, { part_ids: partIds, md5 }), "file");
  if (!isObject(file)) throw new Failure("The server completed the upload without a file.");
  return idOf(file);
}

/** A form with one file, streamed from the disk. */
function formOf(
  fields: Record<string, string>,
  {
    path,
    name,
    start,
    bytes,
    sent,
  }: { path: string; name: string; start: number; bytes: number; sent: (bytes: number) => void },
): Body {
  const open = `--${BOUNDARY}\r\ncontent-disposition: form-data; name=`;
  const texts = Object.entries(fields).map(([key, value]) => `${open}"${key}"\r\n\r\n${value}\r\n`);
  const head = `${texts.join("")}${open}"${name}"; filename="${FILENAME}"\r\ncontent-type: ${TYPE}\r\n\r\n`;
  const tail = `\r\n--${BOUNDARY}--\r\n`;
  const length = Buffer.byteLength(head) + bytes + Buffer.byteLength(tail);
  async function* pieces() {
    yield Buffer.from(head);
    let at = start;
    for await (const piece of createReadStream(path, { start, end: start + bytes - 1, highWaterMark: READ_BYTES })) {
      yield piece;
      at += piece.length;
      sent(at);
    }
    yield Buffer.from(tail);
  }
  const headers = { "content-type": `multipart/form-data; boundary=${BOUNDARY}`, "content-length": String(length) };
  return { headers, body: () => Readable.from(pieces(), { objectMode: false }) };
}
