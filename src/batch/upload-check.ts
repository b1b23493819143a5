/**
 * Looks at a file while it is being uploaded, for what OpenAI refuses at once in a file of purpose `batch`: bytes that
 * are no UTF-8, and a first line that is no JSON. The purpose may be known only behind the file, so every file is
 * looked at. Wrong lines further on are found by the batch.
 */
import { BATCH_LINE_BYTES_MAX } from "../limits.ts";
import { jsonFault } from "../upstream/json-valid.ts";
import { LineSplitter, type Line } from "./lines.ts";
import { refusal, type ApiRefusal } from "./refusal.ts";

const NOT_JSONL = { message: "Invalid file format for Batch API. Must be .jsonl", param: null, code: null };
const NOT_UTF8 = { message: "Invalid file for Batch API. Must be utf-8 encoded", param: null, code: null };

export class UploadCheck {
  readonly #lines = new LineSplitter(BATCH_LINE_BYTES_MAX);
  readonly #decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  #isUtf8 = true;
  /** Whether the first line that holds anything is JSON; null = none has ended yet. */
  #isJson: boolean | null = null;

  push(chunk: Uint8Array): void {
    if (this.#isUtf8) this.#isUtf8 = this.#decodes(chunk, true);
    if (this.#isUtf8 && this.#isJson === null) this.#judge(this.#lines.push(chunk)[0] ?? null);
  }

  /** Why the file cannot be a batch's input; null = it may. Call it once, after the last chunk. */
  finish(): ApiRefusal | null {
    if (this.#isUtf8) this.#isUtf8 = this.#decodes(new Uint8Array(0), false);
    if (!this.#isUtf8) return refusal(NOT_UTF8);
    if (this.#isJson === null) this.#judge(this.#lines.finish());
    return this.#isJson === true ? null : refusal(NOT_JSONL);
  }

  #decodes(chunk: Uint8Array, stream: boolean): boolean {
    try {
      this.#decoder.decode(chunk, { stream });
      return true;
    } catch {
      return false;
    }
  }

  #judge(first: Line | null): void {
    // What is too long to be looked at here is told by the batch, with the limit.
    if (first !== null) this.#isJson = first.bytes === null || jsonFault(first.bytes) === null;
  }
}
