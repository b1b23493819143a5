/**
 * Brings bytes of unknown number into R2. They are staged first: all bytes are read, but nothing can be seen under the
 * key until `commit`, for what a form says of its file may come behind it. Memory: two parts, one that fills and one
 * that is on its way. R2 itself drops, after a week, what a Worker that died had neither committed nor discarded.
 */
import type { Reason } from "../errors.ts";
import { FILE_PART_BYTES } from "../limits.ts";
import { Md5 } from "./md5.ts";
import { PartBuffer } from "./part-buffer.ts";
import type { ByteSource } from "./source.ts";

export type StageOptions = {
  key: string;
  /** More bytes than that are refused as soon as they come. */
  bytesMax: number;
  /** What the refusal of a larger file is about; default `file`. */
  param?: string;
  contentType?: string;
  withMd5?: boolean;
};

/** A file that is read and stored nowhere yet: exactly one of `commit` and `discard` must follow. */
export type StagedFile = {
  ok: true;
  bytes: number;
  /** Hexadecimal; null unless asked for. */
  md5: string | null;
  /** Makes the object. An exception means that R2 failed, and nothing is left. */
  commit(): Promise<void>;
  /** Leaves nothing behind. */
  discard(): Promise<void>;
};

/** Reads the source to its end. What is refused, by whatever reason, has left nothing behind. */
export async function stageFile(
  bucket: R2Bucket,
  source: ByteSource,
  options: StageOptions,
): Promise<StagedFile | { ok: false; reason: Reason }> {
  const parts = new Parts(bucket, options);
  const md5 = options.withMd5 ? new Md5() : null;
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
      if (bytes > options.bytesMax) return await refuse(tooLarge(options));
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

function tooLarge({ bytesMax, param = "file" }: StageOptions): Reason {
  return { reason: "payload_too_large", what: `the ${param}`, bytesMax, param };
}

/** One object in the making. Up to one part is a plain put; more are a multipart upload of equal parts but the last. */
class Parts {
  readonly #bucket: R2Bucket;
  readonly #key: string;
  readonly #metadata: R2MultipartOptions;
  #filling = new PartBuffer(FILE_PART_BYTES);
  #spare = new PartBuffer(FILE_PART_BYTES);
  #upload: R2MultipartUpload | null = null;
  readonly #stored: R2UploadedPart[] = [];
  #onItsWay: Promise<R2UploadedPart> | null = null;

  constructor(bucket: R2Bucket, { key, contentType }: StageOptions) {
    this.#bucket = bucket;
    this.#key = key;
    this.#metadata = contentType === undefined ? {} : { httpMetadata: { contentType } };
  }

  /** A full part is sent only when more follows: so the last part is never empty, and a single one is a plain put. */
  async add(bytes: Uint8Array): Promise<void> {
    for (let rest = bytes; rest.length > 0;) {
      if (this.#filling.isFull) {
        this.#upload ??= await this.#bucket.createMultipartUpload(this.#key, this.#metadata);
        await this.#send(this.#upload);
      }
      rest = this.#filling.take(rest);
    }
  }

  async commit(): Promise<void> {
    try {
      if (this.#upload === null) {
        await this.#bucket.put(this.#key, this.#filling.view(), this.#metadata);
      } else {
        await this.#send(this.#upload);
        await this.#arrived();
        await this.#upload.complete(this.#stored);
      }
    } catch (error) {
      await this.discard();
      throw error;
    }
  }

  async discard(): Promise<void> {
    // A part must not arrive behind the abort, and its failure does not matter any more; nor does the abort's: R2 drops
    // unfinished uploads itself.
    await this.#onItsWay?.catch(() => {});
    await this.#upload?.abort().catch(() => {});
  }

  async #send(upload: R2MultipartUpload): Promise<void> {
    await this.#arrived();
    const full = this.#filling;
    this.#filling = this.#spare;
    this.#spare = full;
    this.#filling.clear();
    this.#onItsWay = upload.uploadPart(this.#stored.length + 1, full.view());
    // Its failure is met where its arrival is awaited, which may be much later.
    this.#onItsWay.catch(() => {});
  }

  async #arrived(): Promise<void> {
    if (this.#onItsWay === null) return;
    this.#stored.push(await this.#onItsWay);
    this.#onItsWay = null;
  }
}
