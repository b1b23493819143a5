/**
 * Checks a batch's file line by line before anything is sent: each line, and the rules for all of them together. A
 * restart begins with the first line.
 */
import {
  BATCH_EMBEDDING_INPUTS_MAX,
  BATCH_ERRORS_MAX,
  BATCH_FILE_BYTES_MAX,
  BATCH_LINES_MAX,
  BATCH_MODELS_MAX,
  CUSTOM_IDS_CHARS_MAX,
} from "../limits.ts";
import {
  DUPLICATE_ID,
  EMPTY_FILE,
  FILE_TOO_LARGE,
  IDS_TOO_LONG,
  otherModel,
  TOO_MANY_INPUTS,
  TOO_MANY_LINES,
  type LineError,
  type LineFault,
} from "./line-error.ts";
import type { Line } from "./lines.ts";
import { readLine, type BatchLine, type LineRules } from "./validate.ts";

export type BatchRules = LineRules & {
  /** Size of the whole file, bytes. */
  fileBytes: number;
  /** Whether all lines must name one model. */
  strict: boolean;
};

/** `model` = the model of all lines, null if they differ; `models` = the first `BATCH_MODELS_MAX` of them. */
export type BatchVerdict =
  | { ok: true; total: number; model: string | null; models: readonly string[] }
  | { ok: false; errors: readonly LineError[] };

export class BatchCheck {
  readonly #rules: BatchRules;
  readonly #ids = new Set<string>();
  #idChars = 0;
  readonly #models = new Set<string>();
  readonly #errors: LineError[] = [];
  #firstModel: string | null = null;
  #isMixed = false;
  #total = 0;
  #inputs = 0;
  #isOver = false;

  constructor(rules: BatchRules) {
    this.#rules = rules;
    if (rules.fileBytes > BATCH_FILE_BYTES_MAX) this.#stop(FILE_TOO_LARGE);
  }

  /** Whether the verdict is final: the rest of the file need not be read. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Requests seen so far, refused ones included. */
  get total(): number {
    return this.#total;
  }

  /** Takes the next line; null = it was refused. */
  add({ bytes, number }: Pick<Line, "bytes" | "number">): BatchLine | null {
    if (this.#isOver) return null;
    if (this.#total === BATCH_LINES_MAX) return this.#stop(TOO_MANY_LINES);
    this.#total += 1;
    const read = readLine(bytes, this.#rules);
    if (!read.ok) return this.#refuse(read.fault, number);
    const line = read.value;
    if (this.#ids.has(line.customId)) return this.#refuse(DUPLICATE_ID, number);
    this.#ids.add(line.customId);
    this.#idChars += line.customId.length;
    if (this.#idChars > CUSTOM_IDS_CHARS_MAX) return this.#stop(IDS_TOO_LONG);
    const first = (this.#firstModel ??= line.model);
    if (line.model !== first) {
      this.#isMixed = true;
      if (this.#rules.strict) return this.#refuse(otherModel(line.model, first), number);
    }
    if (this.#models.size < BATCH_MODELS_MAX) this.#models.add(line.model);
    if (line.endpoint === "embeddings") {
      this.#inputs += line.facts.messageCount;
      if (this.#inputs > BATCH_EMBEDDING_INPUTS_MAX) return this.#stop(TOO_MANY_INPUTS);
    }
    return line;
  }

  /** The verdict, once all lines were added or `isOver`. */
  finish(): BatchVerdict {
    if (this.#total === 0 && this.#errors.length === 0) return { ok: false, errors: [{ ...EMPTY_FILE, line: null }] };
    if (this.#errors.length > 0) return { ok: false, errors: this.#errors };
    const model = this.#isMixed ? null : this.#firstModel;
    return { ok: true, total: this.#total, model, models: [...this.#models] };
  }

  #refuse(fault: LineFault, line: number): null {
    this.#errors.push({ ...fault, line });
    this.#isOver = this.#errors.length === BATCH_ERRORS_MAX;
    return null;
  }

  /** A fault of the whole file comes first, so that it is not lost among those of lines. */
  #stop(fault: LineFault): null {
    this.#errors.unshift({ ...fault, line: null });
    this.#errors.length = Math.min(this.#errors.length, BATCH_ERRORS_MAX);
    this.#isOver = true;
    return null;
  }
}
