/** Writes a file through a small buffer, so that neither many small writes nor a large text cost much. */
import { open } from "node:fs/promises";

/** Bytes that are gathered before they are written. */
const BUFFER_BYTES = 256 * 1024;

export class FileSink {
  #handle;
  /** @type {Buffer[]} */
  #pieces = [];
  #held = 0;
  /** Bytes taken so far. */
  bytes = 0;

  /** @param {import("node:fs/promises").FileHandle} handle */
  constructor(handle) {
    this.#handle = handle;
  }

  /**
   * A file that is new, or emptied.
   * @param {string} path
   */
  static async create(path) {
    return new FileSink(await open(path, "w"));
  }

  /** @param {Buffer} piece Must not change before `close`. */
  async write(piece) {
    this.#pieces.push(piece);
    this.#held += piece.length;
    this.bytes += piece.length;
    if (this.#held >= BUFFER_BYTES) await this.#flush();
  }

  /** The file is on the disk when this resolves. */
  async close() {
    try {
      await this.#flush();
      await this.#handle.sync();
    } finally {
      await this.#handle.close();
    }
  }

  /** Gives up: what was not written is lost. */
  async abandon() {
    await this.#handle.close();
  }

  async #flush() {
    const piece = Buffer.concat(this.#pieces);
    this.#pieces = [];
    this.#held = 0;
    await this.#handle.writeFile(piece);
  }
}
