/** What the rates of a key let a run start: the provider's buckets, and the pace of a small width. */
import {
  GATE_COLLECTED_CALLS,
  GATE_HEADROOM_SHARE,
  GATE_NEXT_MAX_MS,
  GATE_NEXT_MIN_MS,
  GATE_SLEEP_MS_MAX,
  GATE_UNPAID_MS,
} from "../limits.ts";
import type { Pace } from "./pace.ts";
import { RateBucket, type StoredBucket } from "./rate-bucket.ts";
import type { Run } from "./runs/run.ts";
import { Service, waitingClassesOf } from "./runs/share.ts";
import { NO_AMOUNT, plus, type Amount, type Started } from "./started.ts";
import type { Sums } from "./runs/sums.ts";
import {
  BUCKETS,
  WORK_CLASSES,
  type BucketName,
  type BucketStatus,
  type GateReason,
  type RateSample,
  type UsedTokens,
  type WorkClass,
} from "./wire.ts";

export type StoredBuckets = Partial<Record<BucketName, StoredBucket>>;

/** What a run may start by the rates. `amount` null = they limit nothing. */
export type RateGrant = {
  amount: Amount | null;
  /** What its attempts wait for; null = all that wait may start. */
  reason: GateReason | null;
  /** When more may start, ms. */
  nextInMs: number;
  /** When so many more may start that it is worth waking up for, ms. */
  wakeInMs: number;
  /** The part of the tightest bucket that is left, 0 to 1. */
  left: number;
  /** Calls by which it is behind others that wait. */
  behind: number;
  /** Calls like its own that may start besides. */
  room: number;
};

/** Of rates that are not known, or that let nothing start. */
export const NO_RATE: RateGrant = {
  amount: null,
  reason: null,
  nextInMs: Infinity,
  wakeInMs: Infinity,
  left: 1,
  behind: 0,
  room: Infinity,
};

/** Something that lets calls through at a rate: a bucket, or the pace. */
type Scarce = {
  bucket: BucketName;
  reason: GateReason;
  /** Of its measure, per unit of the run's. */
  factor: number;
  /** Per ms, in its measure. */
  rate: number;
  available: number;
  /** What of it the present grant contains, or leaves to others. */
  taken: number;
  /** When so much is available, ms; what is taken counts. */
  waitFor: (amount: number) => number;
  /** When it cannot collect more, ms. */
  fullInMs: number;
};

/** What a run has started since its last report, and what of all that it has started was rejected: that is no service. */
export type Taken = { started: number; rejected: number };

/** A pace, and how many calls the permits of a run let it start at it: so it goes to those who can use it. */
export type Paced = { pace: Pace; callsMax: number };

/** The classes of a run that waited after its last grant. */
export type WasWaiting = Readonly<Partial<Record<WorkClass, boolean>>>;

export class Rates {
  readonly #service = new Service();
  readonly #buckets = new Map<BucketName, RateBucket>();
  /** How often in a row there was room for a call, and the run that came for it was ahead of others. */
  #passes = 0;

  restore(stored: StoredBuckets, nowMs: number): void {
    for (const name of BUCKETS) {
      const bucket = stored[name];
      if (bucket !== undefined) this.#buckets.set(name, new RateBucket(bucket, 0, nowMs));
    }
  }

  get isKnown(): boolean {
    return this.#buckets.size > 0;
  }

  /** The part of the tightest bucket that is left; 1 if none is known. */
  leftAt(outstanding: Readonly<Amount>, nowMs: number): number {
    let left = 1;
    for (const [name, bucket] of this.#buckets) {
      left = Math.min(left, bucket.available(outstanding[name], nowMs) / bucket.limit);
    }
    return left;
  }

  start(amount: Readonly<Amount>, nowMs: number): void {
    for (const [name, bucket] of this.#buckets) bucket.start(amount[name], nowMs);
  }

  /** @param latencyMs Mean time of a call: completions are counted as they are generated, until its end. */
  follow(sample: RateSample, started: Started, latencyMs: number, nowMs: number): void {
    const ageMs = Math.max(0, sample.ageMs);
    for (const name of BUCKETS) {
      const seen = sample[name];
      if (seen === undefined) continue;
      const bucket = this.#buckets.get(name) ?? RateBucket.from(seen, nowMs);
      this.#buckets.set(name, bucket);
      const countedMs = nowMs - ageMs - (name === "outputTokens" ? latencyMs : 0);
      const amounts = { atSample: started.by(name, countedMs), now: started.total[name] };
      bucket.follow(seen, ageMs, { started: amounts, isExact: name === "requests" }, nowMs);
    }
  }

  /** What answers have used shows what the provider counts, as far as its headers do not. */
  used({ input, output, countedInput, countedOutput }: UsedTokens): void {
    this.#buckets.get("inputTokens")?.expect(input, countedInput);
    this.#buckets.get("outputTokens")?.expect(output, countedOutput);
    // A call is admitted with its cap: what it leaves unused is not known by then.
    this.#buckets.get("tokens")?.expect(input + countedOutput, countedInput + countedOutput);
  }

  /** Calls were rejected; `hintMs`: to come again after this time, less than 0 = since then; null = not said. */
  rejected(hintMs: number | null, nowMs: number): void {
    for (const bucket of this.#buckets.values()) bucket.rejected(hintMs, nowMs);
  }

  /**
   * Corrects what a run has paid for its last grant by what it has started: less, or more by its free allowance.
   * @param others What the other runs have.
   */
  settle(run: Run, { started, rejected }: Taken, others: Sums, nowMs: number): void {
    const paid = WORK_CLASSES.reduce((sum, name) => sum + run.claims[name].paid.calls, 0);
    for (const name of WORK_CLASSES) {
      const { calls, callMs } = run.claims[name].paid;
      if (paid > started) this.#service.add(run, name, -calls * (1 - started / paid) * callMs);
      run.claims[name].paid = { calls: 0, callMs: 0 };
    }
    if (nowMs - run.unpaid.sinceMs > GATE_UNPAID_MS) run.unpaid = { calls: 0, sinceMs: nowMs };
    run.unpaid.calls += Math.max(0, started - paid) - rejected;
    const { calls } = run.unpaid;
    const scarce = calls !== 0 ? this.#scarce(others, null, nowMs) : [];
    if (scarce.length === 0) return;
    this.#service.add(run, run.workClass, calls * msOf(scarce, run.claims[run.workClass].call));
    run.unpaid = { calls: 0, sinceMs: nowMs };
  }

  /**
   * What a run may start now. Its own outstanding grant must have been returned before.
   * @param others What the other runs have.
   */
  grant(run: Run, wasWaiting: WasWaiting, others: Sums, pace: Paced | null, nowMs: number): RateGrant {
    const scarce = this.#scarce(others, pace?.pace ?? null, nowMs);
    if (scarce.length === 0) return NO_RATE;
    this.#service.join(run, wasWaiting, others);
    const own = waitingClassesOf(run);
    const waiters = own.length + others.waiterCount;
    // At a pace, permits are divided and go round; the calls follow them.
    const isLone = own.length === waiters || (pace !== null && this.#buckets.size === 0);
    let callsMax = pace?.callsMax ?? Infinity;
    keepForInteractive(run, others, scarce);
    if (others.busy === 0 && run.inFlight === 0) this.#allowLook(run, scarce, nowMs);
    let amount: Amount = { ...NO_AMOUNT };
    let reason: GateReason | null = null;
    let nextInMs = Infinity;
    let wakeInMs = Infinity;
    let behind = 0;
    for (const workClass of own) {
      const { waiting, call } = run.claims[workClass];
      const fair = isLone ? callsIn(scarce, call) : this.#fairCalls(run, workClass, others, scarce);
      const calls = Math.min(callsMax, waiting, fair, chunkOf(scarce, call));
      amount = plus(amount, call, calls);
      spend(scarce, call, calls);
      callsMax -= calls;
      const callMs = msOf(scarce, call);
      this.#service.add(run, workClass, calls * callMs);
      run.claims[workClass].paid = { calls, callMs };
      run.claims[workClass].unmet = Math.max(0, waiting - calls);
      if (calls >= waiting) continue;
      behind = Math.max(behind, this.#service.behindMs(run, workClass, others) / callMs);
      const [tightest] = scarce.toSorted((a, b) => roomOf(a, call) - roomOf(b, call));
      reason ??= tightest?.reason ?? null;
      const fullInMs = tightest?.fullInMs ?? Infinity;
      const waits = waitsOf(scarce, call, workClass, {
        left: waiting - calls,
        waiters,
        isPaced: pace !== null,
        fullInMs,
      });
      nextInMs = Math.min(nextInMs, waits.nextInMs);
      wakeInMs = Math.min(wakeInMs, waits.wakeInMs);
    }
    const room = callsIn(scarce, run.claims[run.workClass].call);
    const [call, more] = reason === null && pace === null ? headroom(run, others, isLone, scarce) : NO_HEADROOM;
    amount = plus(amount, call, more);
    const left = this.leftAt(others.outstanding, nowMs);
    return { amount, reason, nextInMs, wakeInMs, left, behind, room: room - more };
  }

  status(nowMs: number): Partial<Record<BucketName, BucketStatus>> {
    const statuses: Partial<Record<BucketName, BucketStatus>> = {};
    for (const [name, bucket] of this.#buckets) statuses[name] = bucket.status(nowMs);
    return statuses;
  }

  /** What one unit of a run's tokens is to the provider, at most: by this a grant in tokens is divided. */
  stored(): StoredBuckets {
    const stored: StoredBuckets = {};
    for (const [name, bucket] of this.#buckets) stored[name] = bucket.stored();
    return stored;
  }

  /** The calls of a class of a run among several that wait. */
  #fairCalls(run: Run, workClass: WorkClass, others: Sums, scarce: readonly Scarce[]): number {
    const { call } = run.claims[workClass];
    const callMs = msOf(scarce, call);
    const room = Math.min(...scarce.map((one) => roomOf(one, call)));
    const part = this.#service.partOf(run, workClass, others, room * callMs) / callMs;
    // Who had less than others takes the next call: with many runs, a share below one call would keep all of them waiting.
    const isNext = room >= 1 && this.#service.isBehind(run, workClass, others, callMs * SAME_SHARE);
    const calls = Math.floor(Math.max(part, isNext ? 1 : 0) + 1e-9);
    this.#passes = room < 1 || calls > 0 ? 0 : this.#passes + 1;
    if (this.#passes < PASSES_MAX) return calls;
    // Those who are behind do not come for it.
    this.#passes = 0;
    return Math.max(1, Math.floor(room / PASSES_MAX));
  }

  /**
   * Where nothing is in flight and nothing granted, no sample would ever correct a level that is too low. One call may start
   * if the newest sample does not forbid it.
   */
  #allowLook(run: Run, scarce: readonly Scarce[], nowMs: number): void {
    const { call } = run.claims[run.workClass];
    for (const one of scarce) {
      const bucket = one.reason === "width" ? undefined : this.#buckets.get(one.bucket);
      const cost = costOf(one, call);
      if (bucket !== undefined && bucket.atBest(nowMs) >= cost) one.available = Math.max(one.available, cost);
    }
  }

  #scarce({ outstanding }: Sums, pace: Pace | null, nowMs: number): Scarce[] {
    const scarce = [...this.#buckets].map(([name, bucket]): Scarce => ({
      bucket: name,
      reason: name === "requests" ? "requests_per_minute" : "tokens_per_minute",
      factor: bucket.factor,
      rate: bucket.rate,
      available: bucket.available(outstanding[name], nowMs),
      taken: 0,
      waitFor: (amount) => bucket.waitFor(amount, outstanding[name], nowMs),
      fullInMs: bucket.fullInMs(nowMs),
    }));
    if (pace !== null) {
      scarce.push({
        bucket: "requests",
        reason: "width",
        factor: 1,
        rate: pace.rate,
        available: pace.available(outstanding.requests, nowMs),
        taken: 0,
        waitFor: (calls) => pace.waitFor(calls, outstanding.requests, nowMs),
        fullInMs: Infinity,
      });
    }
    return scarce;
  }
}

/** Runs in a row that leave room for a call to others, before one takes it that is not behind. */
const PASSES_MAX = 16;
/** Part of a call by which two runs may differ and count as equal. */
const SAME_SHARE = 0.001;

function costOf({ bucket, factor }: Scarce, call: Amount): number {
  return call[bucket] * factor;
}

/** Calls that one of the rates has room for, as a fraction. */
function roomOf(one: Scarce, call: Amount): number {
  const cost = costOf(one, call);
  return cost > 0 ? one.available / cost : Infinity;
}

function callsIn(scarce: readonly Scarce[], call: Amount): number {
  return Math.max(0, Math.floor(Math.min(...scarce.map((one) => roomOf(one, call))) + 1e-9));
}

/** The most calls of one grant: of more than a few, a half is left to those who come before it is used up. */
function chunkOf(scarce: readonly Scarce[], call: Amount): number {
  return Math.max(CHUNK_MIN, Math.ceil(callsIn(scarce, call) / 2));
}

const CHUNK_MIN = 8;

/**
 * A call in ms of the provider's capacity: by the rate that it takes most of. Without the factors, which change: what was
 * paid at one must compare with what is paid at another.
 */
function msOf(scarce: readonly Scarce[], call: Amount): number {
  return Math.max(...scarce.map(({ bucket, rate }) => call[bucket] / rate));
}

function spend(scarce: readonly Scarce[], call: Amount, calls: number): void {
  for (const one of scarce) {
    one.available -= costOf(one, call) * calls;
    one.taken += costOf(one, call) * calls;
  }
}

/** Leaves one call to a run that answers people, so that its next one does not wait behind others' batches. */
function keepForInteractive(run: Run, { byClass, interactiveCalls }: Sums, scarce: readonly Scarce[]): void {
  const { runs } = byClass.interactive;
  if (run.workClass === "interactive" || runs === 0) return;
  for (const one of scarce) {
    // Not of a rate that lets less than a few calls through at a time: it would keep the others from starting at all.
    if (one.reason === "width") continue;
    const kept = costOf(one, interactiveCalls) / runs;
    one.available = Math.max(0, one.available - kept);
    one.taken += kept;
  }
}

const NO_HEADROOM: [Amount, number] = [{ ...NO_AMOUNT }, 0];

/** Calls beyond those that wait, so that the next ones need not ask: a part of what nobody waits for. */
function headroom(run: Run, others: Sums, isLone: boolean, scarce: readonly Scarce[]): [Amount, number] {
  const { call } = run.claims[run.workClass];
  const calls = callsIn(scarce, call);
  if (!isLone) return [call, run.workClass === "interactive" ? Math.min(1, calls) : 0];
  return [call, Math.min(calls, Math.ceil((calls * GATE_HEADROOM_SHARE) / (others.runs + 1)))];
}

/** When a waiter may have its next call, and when it should wake up for some of those that are left to it. */
function waitsOf(
  scarce: readonly Scarce[],
  call: Amount,
  workClass: WorkClass,
  { left, waiters, isPaced, fullInMs }: { left: number; waiters: number; isPaced: boolean; fullInMs: number },
): { nextInMs: number; wakeInMs: number } {
  const waitFor = (calls: number): number =>
    Math.max(...scarce.map((one) => one.waitFor(one.taken + costOf(one, call) * calls))) * Math.sqrt(waiters);
  const nextMs = waitFor(1);
  // Someone waits for an answer. Among several waiters the next call may come sooner than it seems, so its run looks before.
  if (workClass === "interactive" && waiters > 1) {
    return { nextInMs: GATE_NEXT_MIN_MS, wakeInMs: bounded(nextMs / 2, GATE_SLEEP_MS_MAX) };
  }
  // Calls whose clients wait are not collected. A pace collects none, either: what is late for one is lost.
  const collectedMs = isPaced || workClass === "interactive" ? nextMs : waitFor(Math.min(left, GATE_COLLECTED_CALLS));
  // What a provider with small windows lets collect is lost when it is full.
  const wakeMs = Math.min(collectedMs, Math.max(nextMs, fullInMs / 2));
  return {
    nextInMs: bounded(Math.min(nextMs, wakeMs), GATE_NEXT_MAX_MS),
    wakeInMs: bounded(wakeMs, GATE_SLEEP_MS_MAX),
  };
}

function bounded(waitMs: number, mostMs: number): number {
  return Math.min(mostMs, Math.max(GATE_NEXT_MIN_MS, waitMs));
}
