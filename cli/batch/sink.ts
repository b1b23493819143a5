/** Writes a file through a small buffer, so that many small writes are cheap and a large text is not copied often. */
import { open, type FileHandle } from "node:fs/promises";

/** Bytes that are buffered before they are written. */
const BUFFER_BYTES = 256 * 1024;

export class FileSink {
  #handle;
  #pieces: Buffer[] = [];
  #bufferedBytes = 0;
  /** Bytes taken so far. */
  bytes = 0;

  constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  /** Creates the file, or empties it. */
  static async create(path: string): Promise<FileSink> {
    return new FileSink(await open(path, "w"));
  }

  /** @param piece Must not change before `close`. */
  async write(piece: Buffer): Promise<void> {
    this.#pieces.push(piece);
    this.#bufferedBytes += piece.length;
    this.bytes += piece.length;
    if (this.#bufferedBytes >= BUFFER_BYTES) await this.#flush();
  }

  /** Resolves when the file is on disk. */
  async close(): Promise<void> {
    try {
      await this.#flush();
      await this.#handle.sync();
    } finally {
      await this.#handle.close();
    }
  }

  /** Closes the file without writing the buffer. */
  async abandon(): Promise<void> {
    await this.#handle.close();
  }

  async #flush() {
    const piece = Buffer.concat(this.#pieces);
    this.#pieces = [];
    this.#bufferedBytes = 0;
    await this.#handle.writeFile(piece);
  }
}
