/**
 * Uploads a number of bytes that is not known in advance to R2. They are staged: all bytes are read, but the key does not
 * exist until `commit`, because the fields of a form may come after its file. Memory: two parts, one that fills and one
 * that is being sent. If the Worker dies before `commit` or `discard`, R2 itself deletes the bytes after a week.
 */
import type { Reason } from "../errors.ts";
import { FILE_PART_BYTES } from "../limits.ts";
import { ByteBuffer } from "../text/bytes/byte-buffer.ts";
import { Digest } from "./digest.ts";
import type { ByteSource } from "./source.ts";

export type StageOptions = {
  key: string;
  /** Largest file: a larger one is refused as soon as its excess arrives. */
  bytesMax: number;
  /** The `param` of that refusal; default `file`. */
  param?: string;
  contentType?: string;
  withMd5?: boolean;
};

/** A file that was read and is not visible yet: call exactly one of `commit` and `discard`. */
export type StagedFile = {
  ok: true;
  bytes: number;
  /** Hexadecimal; null without `withMd5`. */
  md5: string | null;
  /** Creates the object. Throws if R2 fails, and leaves nothing behind then. */
  commit(): Promise<void>;
  /** Leaves nothing behind. */
  discard(): Promise<void>;
};

/** Reads the source to its end. A refused file leaves nothing behind. */
export async function stageFile(
  bucket: R2Bucket,
  source: ByteSource,
  options: StageOptions,
): Promise<StagedFile | { ok: false; reason: Reason }> {
  const parts = new Parts(bucket, options);
  const md5 = options.withMd5 ? new Digest("MD5") : null;
  let bytes = 0;
  const refuse = async (reason: Reason) => {
    await parts.discard();
    return { ok: false as const, reason };
  };
  try {
    for (;;) {
      const read = await source.read();
      if (read.kind === "fault") return await refuse(read.reason);
      if (read.kind === "end") break;
      bytes += read.bytes.length;
      if (bytes > options.bytesMax) return await refuse(fileTooLarge(options));
      await md5?.add(read.bytes);
      await parts.add(read.bytes);
    }
  } catch (error) {
    await parts.discard();
    throw error;
  }
  const hex = md5 === null ? null : await md5.hex();
  return { ok: true, bytes, md5: hex, commit: () => parts.commit(), discard: () => parts.discard() };
}

function fileTooLarge({ bytesMax, param = "file" }: StageOptions): Reason {
  return { reason: "payload_too_large", what: `the ${param}`, bytesMax, param };
}

/** An object that is being written. Up to one part is a plain put, more are a multipart upload of parts of equal size. */
class Parts {
  readonly #bucket: R2Bucket;
  readonly #key: string;
  readonly #metadata: R2MultipartOptions;
  #filling = new ByteBuffer(FILE_PART_BYTES);
  #spare = new ByteBuffer(FILE_PART_BYTES);
  #upload: R2MultipartUpload | null = null;
  readonly #stored: R2UploadedPart[] = [];
  #sending: Promise<R2UploadedPart> | null = null;

  constructor(bucket: R2Bucket, { key, contentType }: StageOptions) {
    this.#bucket = bucket;
    this.#key = key;
    this.#metadata = contentType === undefined ? {} : { httpMetadata: { contentType } };
  }

  /** A full part is sent only when more bytes follow: so the last part is never empty, and a single one is a plain put. */
  async add(bytes: Uint8Array): Promise<void> {
    for (let rest = bytes; rest.length > 0;) {
      if (this.#filling.isFull) {
        this.#upload ??= await this.#bucket.createMultipartUpload(this.#key, this.#metadata);
        await this.#send(this.#upload);
      }
      rest = this.#filling.append(rest);
    }
  }

  async commit(): Promise<void> {
    try {
      if (this.#upload === null) {
        await this.#bucket.put(this.#key, this.#filling.view(), this.#metadata);
      } else {
        await this.#send(this.#upload);
        await this.#sent();
        await this.#upload.complete(this.#stored);
      }
    } catch (error) {
      await this.discard();
      throw error;
    }
  }

  async discard(): Promise<void> {
    // A part must not arrive after the abort. Failures of either do not matter: R2 deletes unfinished uploads itself.
    await this.#sending?.catch(() => {});
    await this.#upload?.abort().catch(() => {});
  }

  async #send(upload: R2MultipartUpload): Promise<void> {
    await this.#sent();
    const full = this.#filling;
    this.#filling = this.#spare;
    this.#spare = full;
    this.#filling.clear();
    this.#sending = upload.uploadPart(this.#stored.length + 1, full.view());
    // Its failure is handled where it is awaited, which may be much later.
    this.#sending.catch(() => {});
  }

  async #sent(): Promise<void> {
    if (this.#sending === null) return;
    this.#stored.push(await this.#sending);
    this.#sending = null;
  }
}
