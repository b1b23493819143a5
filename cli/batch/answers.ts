/**
 * The answers of a batch in the order of its input. They stay on disk as they were downloaded; memory holds only the position of
 * each.
 */
import { createReadStream } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";
import { Failure } from "../failure.ts";
import { parseJson, textOf } from "../text/json.ts";
import { linesOf, SENT_LINE_BYTES_MAX } from "../text/lines.ts";

export class Answers {
  #places: Map<string, number>;
  #files: FileHandle[] = [];
  /** For each input line: its file, counted from 1 (0 = no answer), and the position in that file. */
  #file;
  #start;
  #bytes;
  /** Number of answers with an unknown id, or with an id that was already answered. */
  strangers = 0;

  /** @param ids In the input's order, each once. */
  constructor(ids: readonly string[]) {
    this.#places = new Map(ids.map((id, place) => [id, place]));
    this.#file = new Uint8Array(ids.length);
    this.#start = new Float64Array(ids.length);
    this.#bytes = new Float64Array(ids.length);
  }

  /** Adds a file of answers. If a line has two answers, the first counts. */
  async add(path: string): Promise<void> {
    this.#files.push(await open(path));
    for await (const { number, start, bytes } of linesOf(createReadStream(path), SENT_LINE_BYTES_MAX)) {
      const id = textOf(parseJson(bytes.toString("utf8")), "custom_id");
      if (id === null) throw new Failure(`Line ${number} of the server's answers has no custom_id.`);
      const place = this.#places.get(id);
      if (place === undefined || this.#file[place] !== 0) {
        this.strangers += 1;
        continue;
      }
      this.#file[place] = this.#files.length;
      this.#start[place] = start;
      this.#bytes[place] = bytes.length;
    }
  }

  /** The unchanged answer to an input line; null if there is none. */
  async line(place: number): Promise<Buffer<ArrayBuffer> | null> {
    const file = this.#files[(this.#file[place] ?? 0) - 1];
    if (file === undefined) return null;
    const bytes = Buffer.alloc(this.#bytes[place] ?? 0);
    const { bytesRead } = await file.read(bytes, 0, bytes.length, this.#start[place] ?? 0);
    if (bytesRead !== bytes.length) throw new Error("a file of answers became shorter while it was read");
    return bytes;
  }

  async close(): Promise<void> {
    for (const file of this.#files) await file.close();
  }
}
