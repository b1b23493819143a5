/**
 * What a run and a gate send each other. A gate is the state of one key of one upstream, shared by all runs; a run exchanges
 * a report for a grant. Times are durations in ms, never points in time, because the clocks of objects differ. A field that
 * is optional is newer than the first version: its docstring names what an absent one means.
 */
import type { StopReason } from "../call.ts";
import type { Durations } from "./latency-sketch.ts";

/** The classes of work, in the order of their shares when all of them wait. */
export const WORK_CLASSES = ["interactive", "standard", "batch"] as const;
export type WorkClass = (typeof WORK_CLASSES)[number];

/** What a run has waiting in one class. A slot whose retry is not due yet does not wait. */
export type ClassDemand = {
  /** Attempts that would start now if the gate allowed them. */
  waiting: number;
  /**
   * Tokens of one such attempt, on average, as providers count them at admission: prompt bytes ÷ 4 plus the completion cap.
   * No bound: the gate learns from the provider's headers by how much it is wrong.
   */
  tokensPerCall: number;
  /** The part of `tokensPerCall` that is the prompt; absent = half of it. */
  inputTokensPerCall?: number;
};

/** One bucket of a provider's rate limit as its headers show it. */
export type BucketSample = {
  /** Requests or tokens per window; null = the headers do not name it. */
  limit: number | null;
  remaining: number;
  /** Time until the bucket is full again, or its window ends, ms; null = the headers do not name it. */
  resetMs: number | null;
  /** Time in which an empty bucket becomes full, ms. */
  windowMs: number;
};

export const BUCKETS = ["requests", "tokens", "inputTokens", "outputTokens"] as const;
export type BucketName = (typeof BUCKETS)[number];

/** A provider's rate limits, as the headers of one answer show them. */
export type RateSample = Partial<Record<BucketName, BucketSample>> & {
  /**
   * Age of the figures, ms: since the attempt was sent, because providers count at admission. An executor adds the time
   * since then before it reports, a run the time since it was reported to.
   */
  ageMs: number;
};

/**
 * What attempts failed with that concerns the key. `rate_limited`: 429. `overloaded`: 503 and 529. `timeout` and
 * `schema_violation` count only in the mode `penalty`. `stopped`: the provider calls the key itself unusable.
 */
export type GateFailure = {
  class: "rate_limited" | "overloaded" | "timeout" | "schema_violation" | "stopped";
  /** Set for `stopped` only. */
  stop: StopReason | null;
  /** The largest of the providers' hints when to come again, ms from its arrival; null = none of them had one. */
  hintMs: number | null;
  /** Attempts that failed so. */
  count: number;
  /** Time since the latest of them, ms. */
  ageMs: number;
  /** The provider's words, without secrets, for the operator; null = none. */
  message: string | null;
  /** Of `overloaded`: the models that were, with how many of `count`. What is missing, or absent, counts for the key. */
  models?: readonly { model: string; count: number }[];
};

/** A model that is overloaded by itself: its calls are narrowed, and the key is not. */
export type BusyModel = {
  model: string;
  /** No attempt at it starts before this time has passed, because the provider said so, ms. 0 = now. */
  waitMs: number;
};

/** What answers said that their calls have used, beside what the run had counted for the same calls. */
export type UsedTokens = {
  /** Tokens of the prompts that were not in the provider's cache, and of the completions, by the providers' `usage`. */
  input: number;
  output: number;
  /** The same as in `tokensPerCall`: prompt bytes ÷ 4, and the completion caps. */
  countedInput: number;
  countedOutput: number;
};

/** How long attempts at one model took. */
export type ModelLatency = {
  model: string;
  /** Times to the end. */
  whole: Durations;
  /** Times to the first byte. Attempts of one line are similar: without load, the provider takes about as long for each of them. */
  ttfb: readonly { line: string; durations: Durations }[];
};

/** The times to the end of a model's attempts. */
export type ModelPercentiles = { model: string; p50Ms: number; p95Ms: number };

/** What a run reports to a gate. */
export type GateReport = {
  /** Id of the run. */
  run: string;
  /**
   * Names the run object's instance: its counters start at 0. A gate that does not know it yet takes the first counters
   * as they are.
   */
  instance: string;
  /** Number of the report within its instance, from 1. A repeated one (its reply was lost) counts once. */
  number: number;
  /** `epoch` of the last grant; 0 = the run has had none. */
  epoch: number;
  /** The run's weight among runs that wait: 1 = an equal share. */
  weight: number;
  classes: Readonly<Record<WorkClass, ClassDemand>>;
  /** Attempts in flight through this gate, leased credit included. */
  inFlight: number;
  /** `permits` of the last grant, while it is valid; null = no limit, 0 = no valid grant. */
  permits: number | null;
  /** Attempts that this instance has started through the gate since its begin, and their tokens as in `tokensPerCall`. */
  started: { requests: number; tokens: number };
  /** Time since the last of them was started, ms; absent = 0. */
  sinceStartMs?: number;
  /** Attempts of this instance that have ended in an answer, since its begin. */
  succeeded: number;
  /** Among the attempts that have ended in an answer since the last report; null = none has. */
  latency: {
    /** Mean time to the end, ms. */
    meanMs: number;
    /** The same attempts by model; absent = the run does not distinguish them. */
    models?: readonly ModelLatency[];
  } | null;
  /** What the attempts that have ended in an answer since the last report have used; absent = none of them has said it. */
  used?: UsedTokens;
  /** The newest headers seen since the last report, oldest first; at most a few. */
  samples: readonly RateSample[];
  /** Since the last report, one entry per class and stop reason. */
  failures: readonly GateFailure[];
  /** True if an attempt has succeeded that was started after the run learned that the gate is stopped: the key works again. */
  recovered: boolean;
};

/**
 * `open`: nothing is known that makes calls wait. `paced`: calls wait for a rate, or for a time that the provider named.
 * `shrunk`: the width is limited, because the provider rejects calls without a hint. `stopped`: nothing is sent but probes.
 */
export type GateClass = "open" | "paced" | "shrunk" | "stopped";

/** What calls wait for at a gate. */
export type GateReason = "requests_per_minute" | "tokens_per_minute" | "width" | "stopped";

/**
 * What a run may do. The counts start with the report that the grant answers: attempts that were started meanwhile count.
 * A run exchanges again when `nextInMs` has passed and it has anything waiting or in flight; at once when the first attempt
 * fails with one of `GateFailure`, when attempts begin to wait for the gate, and when half of `requests` or `tokens` is used
 * that was all that it wanted.
 */
export type GateGrant = {
  /** Names the gate object's instance. */
  epoch: number;
  class: GateClass;
  /** What attempts wait for; null = nothing, or the gate is open. */
  reason: GateReason | null;
  /** Most attempts in flight of this run through this gate; null = no limit of the gate. */
  permits: number | null;
  /** Attempts that may be started; null = no limit of the gate. */
  requests: number | null;
  /** Tokens that may be started, in the run's own measure (`tokensPerCall`); null = no limit of the gate. */
  tokens: number | null;
  /** No attempt starts before this time has passed, ms. 0 = now. */
  waitMs: number;
  /** The grant is valid for this time, ms. Then the run has no permits until it exchanges again. */
  ttlMs: number;
  /** When the run exchanges again, ms: with what it does next after that. */
  nextInMs: number;
  /**
   * When it exchanges although it does nothing, if calls wait for the gate, ms: until then it may sleep. Absent = `nextInMs`. If
   * none waits for the gate, it may sleep for as long as it likes.
   */
  wakeInMs?: number;
  /** While stopped: why, since when (ms ago), and the provider's words; null = it is not stopped. */
  stop: { reason: StopReason; forMs: number; message: string | null } | null;
  /**
   * Attempts that runs may begin with together that are new at the gate, until it has replied to them. Absent = it knows of no bound.
   */
  newRuns?: number;
  /** How long the calls of all runs take, of models of which enough is known; absent = nothing new, or it is not measured. */
  latency?: readonly ModelPercentiles[];
  /** Models that the run narrows by itself, because they are overloaded while others of the key are answered. Absent = none. */
  busyModels?: readonly BusyModel[];
  /**
   * The gate has stored that the run may have counted more than the gate has, so that a reader of the counts visits it. Absent =
   * it is a notice.
   */
  notesRun?: true;
};

/** A bucket as the gate sees it now. */
export type BucketStatus = { limit: number; remaining: number; resetMs: number };

/** How long the calls of a model take, as an operator sees it; a null was not measured. */
export type LatencyStatus = {
  model: string;
  ttfbP50Ms: number | null;
  ttfbP95Ms: number | null;
  p95Ms: number | null;
  /** The latest attempts that these are of; older ones fade. */
  samples: number;
};

/** A gate as an operator sees it. */
export type GateStatus = {
  epoch: number;
  class: GateClass;
  reason: GateReason | null;
  /** The learned width; null = none is needed so far. */
  width: number | null;
  /** Attempts in flight by the latest reports. */
  inFlight: number;
  /** Permits that runs hold; null = no limit. */
  permits: number | null;
  buckets: Partial<Record<BucketName, BucketStatus>>;
  /** Attempts that wait, by the latest reports. */
  waiting: number;
  /** Runs known to the gate. */
  runs: number;
  /** Time for which nobody may start, ms. */
  waitMs: number;
  stop: { reason: StopReason; forMs: number; message: string | null; nextProbeInMs: number } | null;
  lastError: { class: GateFailure["class"]; message: string | null; forMs: number } | null;
  /** How long the calls of each model take; absent = the gate does not measure it. */
  latency?: readonly LatencyStatus[];
  /** The models that are overloaded by themselves; absent = none is. */
  busyModels?: readonly BusyModel[];
};
