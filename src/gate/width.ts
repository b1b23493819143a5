/**
 * The width of a key whose provider rejects calls without saying when to come again: a search from both sides. A rejection
 * lowers it, and shows where the ceiling was; calm raises it, fast up to just below that ceiling, slowly beyond it.
 */
import {
  GATE_OVERLOAD_PROOF,
  GATE_OVERLOAD_SHARE,
  GATE_WIDTH_CUT,
  GATE_WIDTH_FORGET_MS,
  GATE_WIDTH_MIN,
  GATE_WIDTH_NEAR,
  GATE_WIDTH_PROBE_MS,
  GATE_WIDTH_PROOF,
  GATE_WIDTH_PROOF_MS,
  GATE_WIDTH_REST_MS,
  GATE_WIDTH_RISE_MS,
} from "../limits.ts";
import { TtfbWatch, type Progress } from "./ttfb.ts";

/** What is stored of a width. `rejectedMs`: when a call was rejected last; absent = not known. */
export type StoredWidth = { width: number; ceiling: number; rejectedMs?: number };

export class AdaptiveWidth {
  /** null = nothing has been rejected so far. May be below 1: then calls are paced. */
  #width: number | null = null;
  /** The width at which the last rejection came. */
  #ceiling = 0;
  /** Rejections before this time belong to the last one. */
  #restUntilMs = 0;
  /** Rejections and successes since the width was lowered last. */
  #rejections = 0;
  #successes = 0;
  #rejectedMs = 0;
  #raisedMs = 0;
  /** Rejections for overload, and no others, since the last success. */
  #overloads = 0;
  /** Rejections for overload beyond the share that a provider's own faults make, since the width was lowered last. */
  #excess = 0;
  /** The next step beyond the ceiling: it doubles while nothing is rejected, so that a higher capacity is found. */
  #step = 1;
  readonly #ttfb = new TtfbWatch();
  /** What was known before a smaller width was tried because calls take longer; null = none is tried, or a rejection came since. */
  #untried: { width: number | null; ceiling: number } | null = null;

  /** A width that was stored. */
  restore({ width, ceiling, rejectedMs }: StoredWidth, nowMs: number): void {
    this.#width = width;
    this.#ceiling = ceiling;
    // Even if the clock has gone back.
    this.#rejectedMs = Math.min(rejectedMs ?? nowMs, nowMs);
    this.#raisedMs = nowMs;
  }

  get exact(): number | null {
    return this.#width;
  }

  /** Permits that runs may hold together; null = no limit. Below four, calls are paced besides. */
  get permits(): number | null {
    if (this.#width === null) return null;
    return this.#width < PACED_BELOW ? Math.max(1, Math.ceil(this.#width)) : Math.floor(this.#width);
  }

  /**
   * True while the provider answers nothing but that it is overloaded: it is down. No pace would help then, and its calls use up
   * their attempts; they must not wait for hours to end.
   */
  get #isDown(): boolean {
    return this.#overloads >= DOWN_MIN;
  }

  /** Calls that may start per ms, where the width is too small to be a number of permits; null = no limit. */
  ratePerMs(latencyMs: number): number | null {
    if (this.#width === null || this.#width >= PACED_BELOW || this.#isDown) return null;
    return this.#width / Math.max(1, latencyMs);
  }

  /**
   * Attempts were rejected. One among many that succeed lowers the width a little; most of all halve it.
   * @param inFlight Attempts in flight after the rejections.
   * @param isOverload Whether the provider called itself overloaded, rather than the calls too many.
   */
  rejected(count: number, inFlight: number, nowMs: number, isOverload = false): void {
    this.#overloads = isOverload ? this.#overloads + count : 0;
    const isLate = nowMs - this.#rejectedMs > GATE_WIDTH_PROOF_MS;
    this.#rejectedMs = nowMs;
    if (this.#width === null && isLate) this.#forgetCounts();
    this.#rejections += count;
    if (isOverload) this.#excess += count;
    if (nowMs < this.#restUntilMs) return;
    // A few in a hundred fail at any width, so that no smaller one would end them.
    if (isOverload && this.#excess < GATE_OVERLOAD_PROOF) return;
    // One that is down for a moment rejects calls as well, however few there are.
    if (this.#width === null && this.#rejections < GATE_WIDTH_PROOF) return;
    const before = this.#width ?? inFlight + count;
    const share = this.#rejections / (this.#rejections + this.#successes);
    // Where more are out than the width, the rejections are theirs: they do not show where the ceiling is.
    const isOver = this.#width !== null && before >= OVER_MIN && inFlight > before * OVER_SHARE;
    if (!isOver) this.#ceiling = before;
    this.#untried = null;
    this.#set(before * Math.min(GATE_WIDTH_CUT, Math.max(this.#width === null ? 0.5 : LEAST_CUT, 1 - share)), nowMs);
    this.#restUntilMs = nowMs + GATE_WIDTH_REST_MS;
    this.#forgetCounts();
  }

  /** Attempts have succeeded, whether others were rejected meanwhile or not. */
  count(succeeded: number): void {
    this.#successes += succeeded;
    this.#excess = Math.max(0, this.#excess - succeeded * EXPECTED_PER_SUCCESS);
    if (succeeded > 0) this.#overloads = 0;
  }

  /** Attempts have succeeded, and none was rejected: the width rises if it is what limits them. */
  succeeded(progress: Progress, latencyMs: number, nowMs: number): void {
    const { inFlight, count } = progress;
    const verdict = this.#ttfb.see(progress, latencyMs, nowMs);
    if (verdict === "undo") this.#undo(nowMs);
    else if (verdict !== null) return this.#try(verdict.width, nowMs);
    if (this.#width === null || count === 0 || nowMs < this.#restUntilMs) return;
    const isLimit = inFlight + 1 >= this.#width * 0.75 || this.#width < PACED_BELOW;
    if (isLimit) this.#raise(this.#width, latencyMs, nowMs);
    else this.#forget(nowMs);
  }

  /** Calls take longer, as if they queued: a smaller width shows whether they do. */
  #try(width: number, nowMs: number): void {
    this.#untried = { width: this.#width, ceiling: this.#ceiling };
    this.#rejectedMs = nowMs;
    this.#set(Math.min(this.#width ?? Infinity, width), nowMs);
    this.#ceiling = width;
  }

  /** A smaller width has made no call faster. */
  #undo(nowMs: number): void {
    if (this.#untried === null) return;
    const { width, ceiling } = this.#untried;
    this.#untried = null;
    this.#ceiling = ceiling;
    if (width === null) this.#width = null;
    else this.#set(width, nowMs);
  }

  stored(): StoredWidth | null {
    if (this.#width === null) return null;
    return { width: this.#width, ceiling: this.#ceiling, rejectedMs: this.#rejectedMs };
  }

  #raise(width: number, latencyMs: number, nowMs: number): void {
    const elapsedMs = nowMs - this.#raisedMs;
    const near = this.#ceiling * GATE_WIDTH_NEAR;
    // It approaches that part ever more slowly; just below it counts as there.
    if (width < near * 0.98) {
      const share = Math.min(1, elapsedMs / Math.max(GATE_WIDTH_RISE_MS, latencyMs));
      // No more per look than a third: a ceiling of long ago says little of today.
      const next = Math.min(near, width + Math.max(0, near - width) * share, width * 1.33 + 1);
      this.#width = next;
      this.#raisedMs = nowMs;
      return;
    }
    if (elapsedMs < Math.max(GATE_WIDTH_PROBE_MS, latencyMs)) return;
    // What a queue limits has no edge: large steps would be felt by every call before they show.
    if (this.#ttfb.isDelayed) this.#step = 1;
    const grain = width < PACED_BELOW ? width * 0.05 : Math.max(1, width * 0.02);
    this.#width = width + grain * this.#step;
    this.#raisedMs = nowMs;
    this.#step = Math.min(this.#step * 2, STEP_MAX);
  }

  /** A width that has been more than is needed for long, while calls were answered and none rejected, limits nothing. */
  #forget(nowMs: number): void {
    if (nowMs - this.#rejectedMs >= GATE_WIDTH_FORGET_MS) this.#width = null;
  }

  #forgetCounts(): void {
    this.#rejections = 0;
    this.#successes = 0;
    this.#excess = 0;
  }

  #set(width: number, nowMs: number): void {
    this.#width = Math.max(this.#isDown ? 1 : GATE_WIDTH_MIN, width);
    this.#raisedMs = nowMs;
    this.#step = 1;
  }
}

/** Below this, whole permits are too coarse: three instead of four are a quarter less. */
const PACED_BELOW = 4;
/** So many rejections for overload without a success show that a provider is down: one that has room takes some calls. */
const DOWN_MIN = 8;
const EXPECTED_PER_SUCCESS = GATE_OVERLOAD_SHARE / (1 - GATE_OVERLOAD_SHARE);
/**
 * Factor of the width beyond which so much is in flight, by permits of a larger one, that a rejection says nothing of the ceiling; of a
 * width of a few calls, one call more is as large a factor.
 */
const OVER_MIN = 8;
const OVER_SHARE = 1.1;
/** Largest factor of a step beyond the ceiling. */
const STEP_MAX = 16;
/** A width that is known falls by a quarter at most: where rejections come in bursts, they say less than they seem to. */
const LEAST_CUT = 0.75;
