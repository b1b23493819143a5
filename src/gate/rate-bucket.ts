/**
 * One bucket of a provider's rate limit, as far as it can be known from outside: its headers, and what the runs have started.
 * All amounts are the provider's; what runs count as tokens is multiplied by a factor that the headers show.
 */
import {
  GATE_FACTOR_MAX,
  GATE_FACTOR_MIN,
  GATE_FACTOR_WINDOW_SHARE,
  GATE_LIMIT_WINDOW_MS_MIN,
  GATE_LOOK_MS,
  GATE_MARGIN_MS,
  GATE_UNSAMPLED_SHARE,
} from "../limits.ts";
import type { BucketSample, BucketStatus } from "./wire.ts";

/** What is stored of a bucket. */
export type StoredBucket = { limit: number; windowMs: number; factor: number };

/** A sample that was believed. */
type Anchor = { atMs: number; remaining: number; limit: number; started: number };

export class RateBucket {
  #limit: number;
  #windowMs: number;
  /** What the provider counts per unit that a run counts. */
  #factor: number;
  /** What is left now, before what runs may still start. */
  #level: number;
  #levelMs: number;
  /** What was started since the newest sample, in the measure of the runs. */
  #unsampled = 0;
  #newest: Anchor | null = null;
  /** The sample from which the factor is being measured. */
  #measured: Anchor | null = null;
  /** What answers said that calls have used, and what runs had counted for them; earlier ones count less. */
  #used = 0;
  #estimated = 0;
  /** The most that the bucket holds: less than its limit where the provider enforces that in small windows. */
  #most: number;
  /** What the provider has counted between samples, and what runs have started then; older measurements count less. */
  #counted = 0;
  #compared = 0;

  /** A bucket that is known from before a restart is empty: what was started meanwhile is not known. */
  constructor({ limit, windowMs, factor }: StoredBucket, level: number, nowMs: number) {
    this.#limit = limit;
    this.#windowMs = windowMs;
    this.#factor = factor;
    this.#most = limit;
    this.#level = level;
    this.#levelMs = nowMs;
  }

  /** A bucket that a sample shows for the first time; `follow` gives it its level. */
  static from({ limit, remaining, windowMs }: BucketSample, nowMs: number): RateBucket {
    return new RateBucket({ limit: Math.max(1, limit ?? remaining), windowMs, factor: 1 }, 0, nowMs);
  }

  get limit(): number {
    return this.#limit;
  }

  get factor(): number {
    return this.#factor;
  }

  /** Refill, per ms. */
  get rate(): number {
    return this.#limit / this.#windowMs;
  }

  /** Time until it holds as much as it can, ms. */
  fullInMs(nowMs: number): number {
    this.#refill(nowMs);
    return Math.max(0, this.#most - this.#level) / this.rate;
  }

  /** Answers said that their calls have used so much, for which runs had counted `estimated`. */
  expect(used: number, estimated: number): void {
    this.#used = this.#used * KEPT_OF_USED + used;
    this.#estimated = this.#estimated * KEPT_OF_USED + estimated;
    if (this.#estimated > 0) this.#setFactor();
  }

  /** Runs have started this much, in their own measure. */
  start(amount: number, nowMs: number): void {
    this.#refill(nowMs);
    this.#level -= amount * this.#factor;
    this.#unsampled += amount;
  }

  /**
   * Follows a sample. One that is older than one that was followed says nothing new.
   * @param started What runs had started when the sample was taken, and have started by now, in their measure.
   * @param isExact The runs count what the provider counts, so the factor stays 1.
   */
  follow(
    { limit, remaining, resetMs, windowMs }: BucketSample,
    ageMs: number,
    { started, isExact }: { started: { atSample: number; now: number }; isExact: boolean },
    nowMs: number,
  ): void {
    const atMs = nowMs - ageMs;
    if (this.#newest !== null && atMs <= this.#newest.atMs) return;
    this.#refill(nowMs);
    this.#limit = Math.max(1, limit ?? Math.max(this.#limit, remaining));
    this.#windowMs = windowMs;
    const anchor = { atMs, remaining, limit: this.#limit, started: started.atSample };
    this.#learnMost(anchor, resetMs);
    if (!isExact) this.#learnFactor(anchor);
    this.#newest = anchor;
    this.#unsampled = started.now - started.atSample;
    const refilled = Math.min(this.#most, remaining + this.rate * ageMs);
    this.#level = refilled - (started.now - started.atSample) * this.#factor;
  }

  /**
   * Calls were rejected, which the provider has not counted: what was started since the newest sample says little.
   * @param hintMs When to come again, or since when; null = not said. No bucket is in a deeper debt than that, and one that was
   * empty is in this debt.
   */
  rejected(hintMs: number | null, nowMs: number): void {
    this.#measured = null;
    if (hintMs === null) return;
    this.#refill(nowMs);
    const debt = this.rate * Math.min(Math.max(0, hintMs), this.#windowMs);
    this.#level = Math.max(this.#level, -debt);
    if (this.#newest !== null && this.#newest.remaining < 1) this.#level = Math.min(this.#level, -debt);
  }

  /**
   * What may still be started, in the provider's measure, when runs hold grants for `outstanding` (in theirs). A margin is
   * left for what the figures do not show yet.
   */
  available(outstanding: number, nowMs: number): number {
    this.#refill(nowMs);
    return Math.max(0, this.#level - outstanding * this.#factor - this.#marginWith(outstanding));
  }

  /**
   * What would be left if nothing had been started since the newest sample: an upper bound of what is. Where nothing is in
   * flight any more, one call within it shows what is true.
   */
  atBest(nowMs: number): number {
    if (this.#newest === null) return this.#most;
    const { remaining, atMs } = this.#newest;
    if (remaining < 1 && nowMs - atMs < GATE_LOOK_MS) return 0;
    return Math.max(0, Math.min(this.#most, remaining + this.rate * (nowMs - atMs)) - this.#margin);
  }

  /** Time until `amount` of the provider's measure is available, ms. */
  waitFor(amount: number, outstanding: number, nowMs: number): number {
    const missing = amount - this.available(outstanding, nowMs);
    if (missing <= 0) return 0;
    this.#refill(nowMs);
    const debt = Math.max(0, outstanding * this.#factor + this.#marginWith(outstanding) - this.#level);
    return (missing + debt) / this.rate;
  }

  status(nowMs: number): BucketStatus {
    this.#refill(nowMs);
    const remaining = Math.max(0, Math.min(this.#limit, this.#level));
    return {
      limit: this.#limit,
      remaining: Math.round(remaining),
      resetMs: Math.round((this.#limit - remaining) / this.rate),
    };
  }

  stored(): StoredBucket {
    return { limit: this.#limit, windowMs: this.#windowMs, factor: this.#factor };
  }

  get #margin(): number {
    return Math.min(this.rate * GATE_MARGIN_MS, this.#most / 10);
  }

  /** The more was started since the newest sample, the less certain is the level. */
  #marginWith(outstanding: number): number {
    return this.#margin + (this.#unsampled + outstanding) * this.#factor * GATE_UNSAMPLED_SHARE;
  }

  #refill(nowMs: number): void {
    if (nowMs <= this.#levelMs) return;
    this.#level = Math.min(this.#most, this.#level + this.rate * (nowMs - this.#levelMs));
    this.#levelMs = nowMs;
  }

  /**
   * Compares what the provider has counted between two samples with what runs have started. A bucket that is full hides a
   * part of it, and so does an empty one, which may be in debt.
   */
  #learnFactor(now: Anchor): void {
    const from = this.#measured;
    const isHidden = now.remaining >= now.limit || now.remaining < now.limit * HIDDEN_BELOW;
    if (from === null || isHidden || from.limit !== now.limit) {
      this.#measured = isHidden ? null : now;
      return;
    }
    const started = now.started - from.started;
    const counted = Math.min(this.#most, from.remaining + this.rate * (now.atMs - from.atMs)) - now.remaining;
    if (started <= 0 && counted <= 0) return;
    // Sums, not a mean of ratios: what one measurement attributes to the wrong side of a sample, the next one takes back.
    this.#counted = this.#counted * KEPT + Math.max(0, counted);
    this.#compared = this.#compared * KEPT + started;
    this.#setFactor();
    this.#measured = now;
  }

  /** What the headers do not show is taken from what answers have used, or it stays as it was. */
  #setFactor(): void {
    const least = this.#limit * GATE_FACTOR_WINDOW_SHARE;
    const expected = this.#estimated > 0 ? this.#used / this.#estimated : this.#factor;
    const seen = (this.#counted + least * expected) / (this.#compared + least);
    // What a full bucket loses, and what others take of the key, is not what the calls cost.
    const most = this.#estimated > 0 ? Math.min(GATE_FACTOR_MAX, expected * BEYOND_USED_MAX) : GATE_FACTOR_MAX;
    this.#factor = Math.max(GATE_FACTOR_MIN, Math.min(most, seen));
  }

  /**
   * A bucket that holds less after a pause than its rate would have filled it with is full with that: its limit is enforced in
   * smaller windows. If others have used the key meanwhile, later samples with more in it raise it.
   */
  #learnMost(now: Anchor, resetMs: number | null): void {
    const last = this.#newest;
    const least = Math.max(CALLS_MIN, this.rate * GATE_LIMIT_WINDOW_MS_MIN);
    const full = resetMs === null ? now.limit : now.remaining + this.rate * resetMs;
    // The headers say when it is full: long before its rate would have filled it up to the limit.
    if (full < now.limit / 2) {
      this.#most = Math.min(now.limit, Math.max(least, full));
      return;
    }
    if (last === null || last.limit !== now.limit || resetMs !== null) {
      this.#most = now.limit;
      return;
    }
    const started = Math.max(0, now.started - last.started) * this.#factor;
    const held = now.remaining + Math.min(started, now.remaining);
    const pausedMs = now.atMs - last.atMs;
    const expected = Math.min(this.#most, last.remaining + this.rate * pausedMs - started);
    // One in which hardly anything is left was used, and shows nothing.
    const isUsed = held < least / 2 || started > expected / 2;
    const isFull = pausedMs >= PAUSE_MS && !isUsed && held < expected / 2;
    this.#most = Math.min(now.limit, Math.max(least, now.remaining, isFull ? held : this.#most));
  }
}

/** Part of a limit below which a bucket counts as empty: the next call may have been admitted into its debt. */
const HIDDEN_BELOW = 0.001;
/** Part of what answers have used that each report leaves: calls of another kind show within a few. */
const KEPT_OF_USED = 0.7;
/** A provider counts no more than so many times what its answers say was used. */
const BEYOND_USED_MAX = 1.5;
/** What any bucket holds: calls, or tokens. */
const CALLS_MIN = 2;
/** Time without a sample after which one shows how full a bucket becomes, ms. */
const PAUSE_MS = 1_500;
/** Part of the sums that each new measurement leaves: a change of the calls shows within a few dozen of them. */
const KEPT = 0.95;
