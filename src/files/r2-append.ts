/**
 * Writes an object in R2 from its beginning to its end, over hours and restarts. Each full part is stored; the rest is in
 * memory, which a restart loses. So the caller keeps what it has appended since the last stored state, and appends it
 * once more after a restart: bytes that are stored already are skipped.
 *
 * After an exception the writer cannot be used: continue as after a restart.
 */
import { FILE_PART_BYTES, FILE_PARTS_MAX } from "../limits.ts";
import { ByteBuffer } from "../text/bytes/byte-buffer.ts";

/** The progress of the object: plain data for the caller to store. */
export type AppendState = {
  /** Null before the first full part. */
  uploadId: string | null;
  parts: readonly { partNumber: number; etag: string }[];
  /** Bytes in these parts, which need not be appended after a restart. */
  bytes: number;
};

/** The state of an object before the first append. */
export const NOTHING_APPENDED: AppendState = { uploadId: null, parts: [], bytes: 0 };

export type AppendOptions = {
  key: string;
  contentType?: string;
  /** The state stored last; default `NOTHING_APPENDED`. */
  state?: AppendState;
  /** The index in the object of the next bytes to be appended; default and maximum: `state.bytes`. */
  fromByte?: number;
};

export class AppendedObject {
  readonly #bucket: R2Bucket;
  readonly #key: string;
  readonly #metadata: R2MultipartOptions;
  readonly #buffer = new ByteBuffer(FILE_PART_BYTES);
  #state: AppendState;
  /** Bytes that will be appended but are stored already. */
  #skipBytes: number;
  /** The last call: calls run one after another, so that bytes are stored in the order of their calls. */
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

  /** What is stored so far. */
  get state(): AppendState {
    return this.#state;
  }

  /** Appends bytes, which must not change until it returns. Returns the state if it changed: store it then. */
  append(bytes: Uint8Array): Promise<AppendState | null> {
    return this.#inTurn(() => this.#append(bytes));
  }

  /**
   * Completes the object and returns its size in bytes. It is safe to repeat after a restart with the same bytes appended:
   * an existing object of that size counts as the completed one.
   */
  complete(): Promise<number> {
    return this.#inTurn(() => this.#complete());
  }

  /** Deletes what is stored, unless the object is complete. */
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
      rest = this.#buffer.append(rest);
      if (!this.#buffer.isFull) continue;
      this.#state = await this.#storePart();
      this.#buffer.clear();
    }
    return this.#state === before ? null : this.#state;
  }

  async #storePart(): Promise<AppendState> {
    const { uploadId, parts, bytes } = this.#state;
    if (parts.length === FILE_PARTS_MAX) throw new RangeError(`${this.#key} cannot have more than ${bytes} bytes`);
    const upload =
      uploadId === null
        ? await this.#bucket.createMultipartUpload(this.#key, this.#metadata)
        : this.#bucket.resumeMultipartUpload(this.#key, uploadId);
    // A part that is missing in a lost state is written once more under its number, which replaces it.
    const { partNumber, etag } = await upload.uploadPart(parts.length + 1, this.#buffer.view());
    return {
      uploadId: upload.uploadId,
      parts: [...parts, { partNumber, etag }],
      bytes: bytes + this.#buffer.length,
    };
  }

  async #complete(): Promise<number> {
    if (this.#skipBytes > 0)
      throw new Error(`${this.#key} was completed before its stored bytes were appended after the restart`);
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
      if (made === null) throw new Error(`${this.#key} exists already`);
      return;
    }
    // The last part is not added to the state: R2 allows nothing behind a part that is not full.
    const { parts } = this.#buffer.length > 0 ? await this.#storePart() : this.#state;
    await this.#bucket.resumeMultipartUpload(this.#key, uploadId).complete([...parts]);
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work);
    this.#turn = done;
    // The caller gets the failure; here it only fails every later call.
    done.catch(() => {});
    return done;
  }
}
