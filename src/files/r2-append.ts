/**
 * An object in R2 that is written from its beginning to its end over hours and restarts. Full parts are stored as they
 * come about; the rest is memory, which a restart loses. So the writer keeps what it has appended since the state that
 * it stored last, and after a restart appends that again: what is stored already is skipped, byte for byte.
 *
 * Any exception leaves the writer unusable: go on as after a restart.
 */
import { FILE_PART_BYTES, FILE_PARTS_MAX } from "../limits.ts";
import { PartBuffer } from "./part-buffer.ts";

/** How far the object has come: plain data for the caller to store. */
export type AppendState = {
  /** null before the first full part. */
  uploadId: string | null;
  parts: readonly { partNumber: number; etag: string }[];
  /** Bytes in these parts: they need not be appended again. */
  bytes: number;
};

/** The state of an object that nothing was appended to. */
export const NOTHING_APPENDED: AppendState = { uploadId: null, parts: [], bytes: 0 };

export type AppendOptions = {
  key: string;
  contentType?: string;
  /** The state stored last; default `NOTHING_APPENDED`. */
  state?: AppendState;
  /** Where in the object the first bytes belong that will now be appended: at most `state.bytes`. Default: there. */
  fromByte?: number;
};

export class AppendedObject {
  readonly #bucket: R2Bucket;
  readonly #key: string;
  readonly #metadata: R2MultipartOptions;
  readonly #buffer = new PartBuffer(FILE_PART_BYTES);
  #state: AppendState;
  /** Bytes to come that are stored already. */
  #skipBytes: number;
  /** Calls take their turn, so that bytes stand in the order in which they were appended. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(bucket: R2Bucket, { key, contentType, state = NOTHING_APPENDED, fromByte }: AppendOptions) {
    const skipBytes = state.bytes - (fromByte ?? state.bytes);
    if (skipBytes < 0) throw new RangeError(`${key} has ${state.bytes} bytes, so none can be appended at ${fromByte}`);
    this.#bucket = bucket;
    this.#key = key;
    this.#metadata = contentType === undefined ? {} : { httpMetadata: { contentType } };
    this.#state = state;
    this.#skipBytes = skipBytes;
  }

  /** What is stored by now. */
  get state(): AppendState {
    return this.#state;
  }

  /** Adds bytes, which must not change until it returns. The state, if it has moved on: then it must be stored. */
  append(bytes: Uint8Array): Promise<AppendState | null> {
    return this.#inTurn(() => this.#append(bytes));
  }

  /**
   * Makes the object of all that was appended; its size in bytes. To be called again after a restart, with the same
   * bytes appended, is safe: an object of that size is taken for the one that was made before.
   */
  complete(): Promise<number> {
    return this.#inTurn(() => this.#complete());
  }

  /** Leaves nothing behind, unless the object is complete. */
  discard(): Promise<void> {
    return this.#inTurn(async () => {
      const { uploadId } = this.#state;
      if (uploadId !== null) await this.#bucket.resumeMultipartUpload(this.#key, uploadId).abort();
    });
  }

  async #append(bytes: Uint8Array): Promise<AppendState | null> {
    const before = this.#state;
    let rest = bytes.subarray(this.#skipBytes);
    this.#skipBytes -= bytes.length - rest.length;
    while (rest.length > 0) {
      rest = this.#buffer.take(rest);
      if (!this.#buffer.isFull) continue;
      this.#state = await this.#storePart();
      this.#buffer.clear();
    }
    return this.#state === before ? null : this.#state;
  }

  async #storePart(): Promise<AppendState> {
    const { uploadId, parts, bytes } = this.#state;
    if (parts.length === FILE_PARTS_MAX) throw new RangeError(`${this.#key} has no room for more than ${bytes} bytes`);
    const upload =
      uploadId === null
        ? await this.#bucket.createMultipartUpload(this.#key, this.#metadata)
        : this.#bucket.resumeMultipartUpload(this.#key, uploadId);
    // A part that a lost state does not tell of is written again under its number, which replaces it.
    const { partNumber, etag } = await upload.uploadPart(parts.length + 1, this.#buffer.view());
    return {
      uploadId: upload.uploadId,
      parts: [...parts, { partNumber, etag }],
      bytes: bytes + this.#buffer.length,
    };
  }

  async #complete(): Promise<number> {
    if (this.#skipBytes > 0) throw new Error(`${this.#key} is to be completed before all was appended again`);
    const size = this.#state.bytes + this.#buffer.length;
    try {
      await this.#write();
    } catch (error) {
      const made = await this.#bucket.head(this.#key);
      if (made?.size !== size) throw error;
    }
    return size;
  }

  async #write(): Promise<void> {
    const { uploadId } = this.#state;
    if (uploadId === null) {
      const onlyIf = { etagDoesNotMatch: "*" };
      const made = await this.#bucket.put(this.#key, this.#buffer.view(), { ...this.#metadata, onlyIf });
      if (made === null) throw new Error(`${this.#key} is an object already`);
      return;
    }
    // The last part is no part of the state: nothing could be appended behind one that is not full.
    const { parts } = this.#buffer.length > 0 ? await this.#storePart() : this.#state;
    await this.#bucket.resumeMultipartUpload(this.#key, uploadId).complete([...parts]);
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work);
    this.#turn = done;
    // The caller meets the failure; here it only makes every later turn fail alike.
    done.catch(() => {});
    return done;
  }
}
