/** Names and parameters of the simulated models: `slow?ms=500`, `fail?status=429&rate=0.3`, `echo?chunk_ms=20`. */
import { TIMEOUT_MS_MAX } from "../../limits.ts";

const MODELS = ["echo", "slow", "fail", "reverse", "random", "names", "json"] as const;

export type SimulatedModelName = (typeof MODELS)[number];

/** Patterns under which plain names reach a simulated upstream that lists none: no `*`, which would catch every model. */
export const SIMULATED_MODEL_PATTERNS: readonly string[] = MODELS.flatMap((model) => [model, `${model}?*`]);

/** A simulated model with its behaviour; every parameter goes with every model. */
export type SimulatedModel = {
  name: SimulatedModelName;
  /** Latency in ms, derived from the prompt, between these two; both 0 = answers at once. */
  minMs: number;
  maxMs: number;
  /** Null = never fails. Else the share of prompts that fail, and how many of their first attempts do. */
  failure: { status: number; rate: number; times: number; retryAfterMs: number | null } | null;
  pace: Pace;
  structure: Structure;
};

/** How a model answers a request for JSON, or one with tools. */
export type Structure = {
  /** Elements of each array, as far as the schema's bounds allow; null = one to three, derived from the prompt. */
  items: number | null;
  /** Calls of tools before it answers in text; null = one if the request demands a call, else none. */
  calls: number | null;
  /** Share of prompts whose JSON is invalid, and how many of the first answers to such a prompt are. */
  invalidRate: number;
  invalidTimes: number;
};

/** The pace of a streamed answer. */
export type Pace = {
  /** Pause between two deltas, ms. */
  chunkMs: number;
  /** Most deltas that the text of a completion is cut into. */
  chunks: number;
  /** Deltas after which the stream breaks off, without its last event; null = it never does. */
  breakAfter: number | null;
};

/** Parameters: default and bounds, both inclusive. */
const PARAMETERS = {
  /** Latency, ms. */
  ms: { min: 0, max: TIMEOUT_MS_MAX, whole: true },
  /** Bounds of a latency that differs by prompt, ms. */
  min: { min: 0, max: TIMEOUT_MS_MAX, whole: true },
  max: { min: 0, max: TIMEOUT_MS_MAX, whole: true },
  /** Status of a failure. */
  status: { min: 400, max: 599, whole: true },
  /** Share of prompts that fail. */
  rate: { min: 0, max: 1, whole: false },
  /** Attempts of one call that fail before one succeeds. */
  times: { min: 0, max: 1_000, whole: true },
  /** Retry-After of a failure, ms. */
  retry_after_ms: { min: 0, max: TIMEOUT_MS_MAX, whole: true },
  /** Pause between two deltas of a stream, ms. */
  chunk_ms: { min: 0, max: TIMEOUT_MS_MAX, whole: true },
  /** Most deltas of a stream. */
  chunks: { min: 1, max: 1_000_000, whole: true },
  /** Deltas after which a stream breaks off. */
  break_after: { min: 0, max: 1_000_000, whole: true },
  /** Elements of each array of an answer that follows a schema. */
  items: { min: 0, max: 10_000, whole: true },
  /** Calls of tools before an answer in text. */
  calls: { min: 0, max: 100, whole: true },
  /** Share of prompts whose JSON is invalid. */
  invalid: { min: 0, max: 1, whole: false },
  /** Answers to such a prompt that are invalid before one is valid. */
  invalid_times: { min: 0, max: 1_000, whole: true },
} as const;

type Parameter = keyof typeof PARAMETERS;

/** The model, or the status and message to refuse it with. */
export type ParsedModel = { ok: true; model: SimulatedModel } | { ok: false; status: 400 | 404; message: string };

const DEFAULT_SLOW_MS = 500;
const DEFAULT_RANDOM_MS = { min: 10, max: 200 };
/** A stream of more than one event, and still readable on a terminal. */
const DEFAULT_CHUNKS = 8;

/** Parses the model id of a request. An unknown name is a 404, an invalid parameter a 400. */
export function parseSimulatedModel(id: string): ParsedModel {
  const question = id.indexOf("?");
  const base = question === -1 ? id : id.slice(0, question);
  const name = MODELS.find((model) => model === base);
  if (name === undefined) {
    return { ok: false, status: 404, message: `the model \`${id}\` does not exist; there are ${MODELS.join(", ")}` };
  }
  const given = new Map<Parameter, number>();
  for (const [parameter, text] of new URLSearchParams(question === -1 ? "" : id.slice(question + 1))) {
    if (!isParameter(parameter)) {
      const message = `unknown parameter ${parameter}; there are ${Object.keys(PARAMETERS).join(", ")}`;
      return { ok: false, status: 400, message };
    }
    const { min, max, whole } = PARAMETERS[parameter];
    const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
    if (!(value >= min && value <= max) || (whole && !Number.isInteger(value))) {
      const message = `${parameter} must be a ${whole ? "whole " : ""}number from ${min} to ${max}`;
      return { ok: false, status: 400, message };
    }
    given.set(parameter, value);
  }
  const [failure, pace, structure] = [failureOf(name, given), paceOf(given), structureOf(given)];
  return { ok: true, model: { name, ...latencyOf(name, given), failure, pace, structure } };
}

function latencyOf(name: SimulatedModelName, given: ReadonlyMap<Parameter, number>): { minMs: number; maxMs: number } {
  const fixed = given.get("ms") ?? (name === "slow" ? DEFAULT_SLOW_MS : 0);
  const isRandom = name === "random" && !given.has("ms");
  const minMs = given.get("min") ?? (isRandom ? Math.min(DEFAULT_RANDOM_MS.min, given.get("max") ?? Infinity) : fixed);
  const maxMs = given.get("max") ?? (isRandom ? DEFAULT_RANDOM_MS.max : fixed);
  return { minMs, maxMs: Math.max(minMs, maxMs) };
}

function failureOf(name: SimulatedModelName, given: ReadonlyMap<Parameter, number>): SimulatedModel["failure"] {
  const mayFail = name === "fail" || given.has("status") || given.has("rate") || given.has("times");
  if (!mayFail) return null;
  return {
    status: given.get("status") ?? 500,
    rate: given.get("rate") ?? 1,
    times: given.get("times") ?? Number.POSITIVE_INFINITY,
    retryAfterMs: given.get("retry_after_ms") ?? null,
  };
}

function paceOf(given: ReadonlyMap<Parameter, number>): Pace {
  return {
    chunkMs: given.get("chunk_ms") ?? 0,
    chunks: given.get("chunks") ?? DEFAULT_CHUNKS,
    breakAfter: given.get("break_after") ?? null,
  };
}

function structureOf(given: ReadonlyMap<Parameter, number>): Structure {
  return {
    items: given.get("items") ?? null,
    calls: given.get("calls") ?? null,
    invalidRate: given.get("invalid") ?? 0,
    invalidTimes: given.get("invalid_times") ?? Number.POSITIVE_INFINITY,
  };
}

function isParameter(name: string): name is Parameter {
  return Object.hasOwn(PARAMETERS, name);
}
