/** Providers as a gate meets them: what they admit, what they reject, and what their headers say. Times in ms. */
import type { RateSample } from "../../src/gate/wire.ts";
import { seeded } from "./engine.ts";

/** A call as it arrives at a provider. */
export type SentCall = { tokens: number; inputTokens: number; outputTokens: number; latencyMs: number };

/** The provider's answer: after which time, and with which headers. A rejection comes at once. */
export type ProviderAnswer = {
  status: number;
  latencyMs: number;
  ttfbMs: number | null;
  hintMs: number | null;
  sample: RateSample | null;
};

export type Provider = {
  send: (call: SentCall, nowMs: number) => ProviderAnswer;
  /** Called when an admitted call has ended. */
  ended: (call: SentCall, nowMs: number) => void;
};

/** A token bucket that refills continuously. */
export class Bucket {
  readonly limit: number;
  readonly #windowMs: number;
  #level: number;
  #atMs = 0;

  /** @param fill Share of the limit that is in it at first. */
  constructor(limit: number, windowMs = 60_000, fill = 1) {
    this.limit = limit;
    this.#level = limit * fill;
    this.#windowMs = windowMs;
  }

  get perMs(): number {
    return this.limit / this.#windowMs;
  }

  levelAt(nowMs: number): number {
    this.#level = Math.min(this.limit, this.#level + this.perMs * (nowMs - this.#atMs));
    this.#atMs = nowMs;
    return this.#level;
  }

  /** Takes an amount, also one that is not there. */
  take(amount: number, nowMs: number): void {
    this.#level = this.levelAt(nowMs) - amount;
  }

  sample(nowMs: number): { limit: number; remaining: number; resetMs: number; windowMs: number } {
    const remaining = Math.max(0, Math.floor(this.levelAt(nowMs)));
    return {
      limit: this.limit,
      remaining,
      resetMs: (this.limit - remaining) / this.perMs,
      windowMs: this.#windowMs,
    };
  }
}

const REJECTED_MS = 20;

/** OpenAI's: requests and tokens per minute; tokens count as prompt and completion cap, at admission. */
export function openaiLike(rpm: number, tpm: number, fill = 1): Provider {
  const requests = new Bucket(rpm, 60_000, fill);
  const tokens = new Bucket(tpm, 60_000, fill);
  return {
    send(call, nowMs) {
      const waitMs = Math.max(
        (1 - requests.levelAt(nowMs)) / requests.perMs,
        (call.tokens - tokens.levelAt(nowMs)) / tokens.perMs,
      );
      if (waitMs <= 0) {
        requests.take(1, nowMs);
        tokens.take(call.tokens, nowMs);
      }
      const sample: RateSample = { ageMs: 0, requests: requests.sample(nowMs), tokens: tokens.sample(nowMs) };
      return waitMs > 0
        ? { status: 429, latencyMs: REJECTED_MS, ttfbMs: null, hintMs: Math.ceil(waitMs), sample }
        : { status: 200, latencyMs: call.latencyMs, ttfbMs: null, hintMs: null, sample };
    },
    ended() {},
  };
}

/**
 * As OpenAI's, but enforced in windows of a second: the bucket holds a second's part of the limit that the headers name, and is
 * refilled at the same rate.
 */
export function openaiBySecond(rpm: number, tpm: number): Provider {
  const requests = new Bucket(rpm / 60, 1_000);
  const tokens = new Bucket(tpm / 60, 1_000);
  const shown = (bucket: Bucket, nowMs: number) => ({
    ...bucket.sample(nowMs),
    limit: bucket.limit * 60,
    windowMs: 60_000,
  });
  return {
    send(call, nowMs) {
      const waitMs = Math.max(
        (1 - requests.levelAt(nowMs)) / requests.perMs,
        (call.tokens - tokens.levelAt(nowMs)) / tokens.perMs,
      );
      if (waitMs <= 0) {
        requests.take(1, nowMs);
        tokens.take(call.tokens, nowMs);
      }
      const sample: RateSample = { ageMs: 0, requests: shown(requests, nowMs), tokens: shown(tokens, nowMs) };
      return waitMs > 0
        ? { status: 429, latencyMs: REJECTED_MS, ttfbMs: null, hintMs: Math.ceil(waitMs), sample }
        : { status: 200, latencyMs: call.latencyMs, ttfbMs: null, hintMs: null, sample };
    },
    ended() {},
  };
}

/** Anthropic's: input tokens count at admission, output tokens as they are generated; it admits while both are over 0. */
export function anthropicLike(rpm: number, inputTpm: number, outputTpm: number): Provider {
  const requests = new Bucket(rpm);
  const input = new Bucket(inputTpm);
  const output = new Bucket(outputTpm);
  return {
    send(call, nowMs) {
      const waitMs = Math.max(
        (1 - requests.levelAt(nowMs)) / requests.perMs,
        (call.inputTokens - input.levelAt(nowMs)) / input.perMs,
        (1 - output.levelAt(nowMs)) / output.perMs,
      );
      if (waitMs <= 0) {
        requests.take(1, nowMs);
        input.take(call.inputTokens, nowMs);
      }
      const sample: RateSample = {
        ageMs: 0,
        requests: requests.sample(nowMs),
        inputTokens: input.sample(nowMs),
        outputTokens: output.sample(nowMs),
      };
      return waitMs > 0
        ? { status: 429, latencyMs: REJECTED_MS, ttfbMs: null, hintMs: Math.ceil(waitMs / 1_000) * 1_000, sample }
        : { status: 200, latencyMs: call.latencyMs, ttfbMs: null, hintMs: null, sample };
    },
    ended: (call, nowMs) => output.take(call.outputTokens, nowMs),
  };
}

/** A server that takes so many calls at a time and rejects the others without a word. */
export function concurrencyLimited(capacity: () => number): Provider {
  let inFlight = 0;
  return {
    send(call) {
      const silent = { ttfbMs: null, hintMs: null, sample: null };
      if (inFlight >= capacity()) return { status: 429, latencyMs: REJECTED_MS, ...silent };
      inFlight += 1;
      return { status: 200, latencyMs: call.latencyMs, ...silent };
    },
    ended: () => void (inFlight -= 1),
  };
}

/** A server that takes so many calls per second, with a burst of one second, and rejects the others without a word. */
export function rateLimitedSilently(perSecond: number): Provider {
  const bucket = new Bucket(perSecond, 1_000);
  return {
    send(call, nowMs) {
      const silent = { ttfbMs: null, hintMs: null, sample: null };
      if (bucket.levelAt(nowMs) < 1) return { status: 429, latencyMs: REJECTED_MS, ...silent };
      bucket.take(1, nowMs);
      return { status: 200, latencyMs: call.latencyMs, ...silent };
    },
    ended() {},
  };
}

/** A server that takes so many calls in any second, and rejects the others without a word. */
export function slidingWindow(perSecond: number): Provider {
  const admitted: number[] = [];
  return {
    send(call, nowMs) {
      const silent = { ttfbMs: null, hintMs: null, sample: null };
      while (admitted[0] !== undefined && admitted[0] <= nowMs - 1_000) admitted.shift();
      if (admitted.length >= perSecond) return { status: 429, latencyMs: REJECTED_MS, ...silent };
      admitted.push(nowMs);
      return { status: 200, latencyMs: call.latencyMs, ...silent };
    },
    ended() {},
  };
}

/** A server that rejects nothing: beyond its capacity, calls queue, and the first byte comes later. */
export function queueing(capacity: (nowMs: number) => number): Provider {
  const freeAtMs: number[] = [];
  return {
    send(call, nowMs) {
      const workers = Math.max(1, capacity(nowMs));
      while (freeAtMs.length < workers) freeAtMs.push(0);
      const open = freeAtMs.slice(0, workers);
      const worker = open.indexOf(Math.min(...open));
      const beginMs = Math.max(nowMs, freeAtMs[worker] ?? 0);
      freeAtMs[worker] = beginMs + call.latencyMs;
      const queuedMs = beginMs - nowMs;
      const latencyMs = queuedMs + call.latencyMs;
      return { status: 200, latencyMs, ttfbMs: queuedMs + call.latencyMs * 0.4, hintMs: null, sample: null };
    },
    ended() {},
  };
}

/** A server with room for all, whose first byte comes after a time that the prompt decides, and the answer after that. */
export function unlimited(ttfbMs: (call: SentCall, nowMs: number) => number): Provider {
  return {
    send(call, nowMs) {
      const firstMs = ttfbMs(call, nowMs);
      return { status: 200, latencyMs: firstMs + call.latencyMs, ttfbMs: firstMs, hintMs: null, sample: null };
    },
    ended() {},
  };
}

/** A provider that calls itself overloaded where another would say that the calls are too many. */
export function callingItOverload(inner: Provider): Provider {
  return {
    send: (call, nowMs) => {
      const answer = inner.send(call, nowMs);
      return answer.status === 429 ? { ...answer, status: 503 } : answer;
    },
    ended: (call, nowMs) => inner.ended(call, nowMs),
  };
}

/** A server with room for all, which fails a share of the calls at random, however many there are at once. */
export function failingAtRandom(share: number, seed: number): Provider {
  const random = seeded(seed);
  const silent = { ttfbMs: null, hintMs: null, sample: null };
  return {
    send: (call) =>
      random() < share
        ? { status: 503, latencyMs: REJECTED_MS, ...silent }
        : { status: 200, latencyMs: call.latencyMs, ...silent },
    ended() {},
  };
}

/** A key that another provider's answers for, while `isUsable`; else its quota is gone. */
export function whileUsable(inner: Provider, isUsable: (nowMs: number) => boolean): Provider {
  return {
    send: (call, nowMs) =>
      isUsable(nowMs)
        ? inner.send(call, nowMs)
        : { status: 402, latencyMs: REJECTED_MS, ttfbMs: null, hintMs: null, sample: null },
    ended: (call, nowMs) => inner.ended(call, nowMs),
  };
}
