/**
 * Checks a file during its upload for what OpenAI refuses at once in a file of purpose `batch`: bytes that are not UTF-8,
 * and a first line that is not JSON. The form may name the purpose after the file, so every file is checked. Invalid
 * lines further on are found by the batch.
 */
import { BATCH_LINE_BYTES_MAX } from "../limits.ts";
import { jsonFault } from "../text/json/validate.ts";
import { LineSplitter, type Line } from "./lines.ts";
import { refusal, type ApiRefusal } from "./refusal.ts";

const NOT_JSONL = { message: "Invalid file format for Batch API. Must be .jsonl", param: null, code: null };
const NOT_UTF8 = { message: "Invalid file for Batch API. Must be utf-8 encoded", param: null, code: null };

export class UploadCheck {
  readonly #lines = new LineSplitter(BATCH_LINE_BYTES_MAX);
  readonly #decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  #isUtf8 = true;
  /** Whether the first line that is not blank is JSON; null = it has not ended yet. */
  #isJson: boolean | null = null;

  push(chunk: Uint8Array): void {
    if (this.#isUtf8) this.#isUtf8 = this.#decodes(chunk, true);
    if (this.#isUtf8 && this.#isJson === null) this.#checkFirst(this.#lines.push(chunk)[0] ?? null);
  }

  /** Why the file cannot be the input of a batch; null if it can. Call it once, after the last chunk. */
  finish(): ApiRefusal | null {
    if (this.#isUtf8) this.#isUtf8 = this.#decodes(new Uint8Array(0), false);
    if (!this.#isUtf8) return refusal(NOT_UTF8);
    if (this.#isJson === null) this.#checkFirst(this.#lines.finish());
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

  #checkFirst(first: Line | null): void {
    // The batch itself refuses a line that is too long to be checked here, and names the limit.
    if (first !== null) this.#isJson = first.bytes === null || jsonFault(first.bytes) === null;
  }
}
