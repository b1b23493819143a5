/**
 * The bodies of a large group on their way to storage. The first few megabytes stay in the pages, which become rows of the
 * run's object, so that the first calls start without a read of R2. The rest goes to R2, many bodies to an object, and the
 * pages have their places instead. No page is given away before its bodies are stored: call `stored` first.
 */
import { placedPage, type CallPage } from "../../../run/queue/call-page.ts";
import {
  BODY_OBJECT_CHARS_MAX,
  BODY_OBJECT_SLOTS_MAX,
  BODY_PUTS_IN_FLIGHT_MAX,
  ROW_BODIES_CHARS_MAX,
} from "../../../limits.ts";
import { withRetry } from "../retry.ts";

export type BodyUploadDeps = {
  /** Stores an object, one JSON text per line, and says its bytes; storing it twice changes nothing. Rejects if it cannot be stored. */
  put: (object: number, text: string) => Promise<number>;
  /** Deletes the objects before number `count`. */
  remove: (count: number) => Promise<void>;
};

export class BodyUpload {
  readonly #deps: BodyUploadDeps;
  readonly #inFlight = new Set<Promise<void>>();
  #rowChars = 0;
  /** Objects that are being stored, or are. */
  #count = 0;
  /** The pages of the next object. */
  #texts: string[] = [];
  #lines = 0;
  #chars = 0;
  #bytes = 0;
  #failure: { error: unknown } | null = null;

  constructor(deps: BodyUploadDeps) {
    this.#deps = deps;
  }

  /** Objects in R2 so far; undefined = none, so that a small group has no trace of them. */
  get objects(): number | undefined {
    return this.#count === 0 ? undefined : this.#count;
  }

  /** Bytes of the objects that are stored. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The page as it is to be sent to the run. Pages come in order. Waits while too many bodies are on their way. */
  async place(page: CallPage): Promise<CallPage> {
    const { length } = page.calls;
    const isFirst = this.#count === 0 && this.#lines === 0;
    if (isFirst && this.#rowChars + length <= ROW_BODIES_CHARS_MAX) {
      this.#rowChars += length;
      return page;
    }
    const lines = linesOf(page.calls);
    const isFull = this.#lines + lines > BODY_OBJECT_SLOTS_MAX || this.#chars + length > BODY_OBJECT_CHARS_MAX;
    if (this.#lines > 0 && isFull) await this.#store();
    const placed = placedPage(page, { object: this.#count, line: this.#lines });
    this.#texts.push(page.calls);
    this.#lines += lines;
    this.#chars += length;
    return placed;
  }

  /** Resolves when every body that was placed is stored. */
  async stored(): Promise<void> {
    if (this.#lines > 0) await this.#store();
    await Promise.all(this.#inFlight);
    this.#check();
  }

  /** Deletes what was stored: the group is not opened. */
  async discard(): Promise<void> {
    await Promise.all(this.#inFlight);
    if (this.#count > 0) await this.#deps.remove(this.#count);
  }

  async #store(): Promise<void> {
    const text = this.#texts.join("\n");
    this.#texts = [];
    this.#lines = 0;
    this.#chars = 0;
    const putting = this.#put(this.#count, text);
    this.#count += 1;
    this.#inFlight.add(putting);
    void putting.then(() => this.#inFlight.delete(putting));
    while (this.#inFlight.size >= BODY_PUTS_IN_FLIGHT_MAX) await Promise.race(this.#inFlight);
    this.#check();
  }

  /** Never rejects: the failure is thrown where the caller waits next. */
  async #put(object: number, text: string): Promise<void> {
    try {
      this.#bytes += await this.#deps.put(object, text);
    } catch (error) {
      this.#failure ??= { error };
    }
  }

  #check(): void {
    if (this.#failure !== null) throw this.#failure.error;
  }
}

/** An upload to R2 under a prefix. */
export function bodyUploadTo(bucket: R2Bucket, prefix: string): BodyUpload {
  const retry = { wait: (ms: number) => scheduler.wait(ms), random: Math.random };
  return new BodyUpload({
    put: (object, text) => withRetry(async () => (await bucket.put(`${prefix}${object}`, text))?.size ?? 0, retry),
    remove: (count) => bucket.delete(Array.from({ length: count }, (_, object) => `${prefix}${object}`)),
  });
}

/** Bodies in a page: JSON text has no line breaks of its own. */
function linesOf(calls: string): number {
  let lines = 1;
  for (let at = calls.indexOf("\n"); at !== -1; at = calls.indexOf("\n", at + 1)) lines += 1;
  return lines;
}
