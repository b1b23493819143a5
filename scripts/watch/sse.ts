/** Server-sent events as they arrive. Only `data` matters here: each line of a run's log holds its own number and type. */
import { LINE_CHARS_MAX, LineSplitter } from "./lines.ts";

/** The parser of one stream. */
export class SseParser {
  readonly #lines = new LineSplitter();
  #data: string[] = [];
  #chars = 0;

  /** The `data` of the events that this chunk ends. An event that the stream's end cuts off never appears. */
  push(chunk: Uint8Array): string[] {
    return this.#lines.push(chunk).flatMap((line) => this.#read(line));
  }

  #read(line: string): string[] {
    if (line === "") return this.#end();
    const colon = line.indexOf(":");
    const field = colon === -1 ? line : line.slice(0, colon);
    if (field !== "data") return [];
    const value = colon === -1 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    this.#chars += value.length;
    if (this.#chars <= LINE_CHARS_MAX) this.#data.push(value);
    return [];
  }

  #end(): string[] {
    const data = this.#data;
    this.#data = [];
    this.#chars = 0;
    return data.length === 0 ? [] : [data.join("\n")];
  }
}
