/** Writes a file through a small buffer, so that many small writes are cheap and a large text is not copied often. */
import { open } from "node:fs/promises";

/** Bytes that are buffered before they are written. */
const BUFFER_BYTES = 256 * 1024;

export class FileSink {
  #handle;
  /** @type {Buffer[]} */
  #pieces = [];
  #bufferedBytes = 0;
  /** Bytes taken so far. */
  bytes = 0;

  /** @param {import("node:fs/promises").FileHandle} handle */
  constructor(handle) {
    this.#handle = handle;
  }

  /**
   * Creates the file, or empties it.
   * @param {string} path
   */
  static async create(path) {
    return new FileSink(await open(path, "w"));
  }

  /** @param {Buffer} piece Must not change before `close`. */
  async write(piece) {
    this.#pieces.push(piece);
    this.#bufferedBytes += piece.length;
    this.bytes += piece.length;
    if (this.#bufferedBytes >= BUFFER_BYTES) await this.#flush();
  }

  /** Resolves when the file is on disk. */
  async close() {
    try {
      await this.#flush();
      await this.#handle.sync();
    } finally {
      await this.#handle.close();
    }
  }

  /** Closes the file without writing the buffer. */
  async abandon() {
    await this.#handle.close();
  }

  async #flush() {
    const piece = Buffer.concat(this.#pieces);
    this.#pieces = [];
    this.#bufferedBytes = 0;
    await this.#handle.writeFile(piece);
  }
}
