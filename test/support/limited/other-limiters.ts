/** Limiters of servers that tell nothing of their limits, and of keys that the provider does not serve. */
import { plainLimiter, type Limiter, type Rejection } from "./limiter.ts";

const TOO_MANY: Rejection = { status: 429, code: "too_many_requests", message: "Too many requests", headers: {} };

/** Refuses what exceeds so many requests in flight, and says nothing else. */
export function inFlightLimiter(most: number): Limiter {
  return plainLimiter(({ inFlight }) => (inFlight >= most ? TOO_MANY : null));
}

/** Refuses what exceeds so many requests within any second, and says nothing else. */
export function perSecondLimiter(most: number): Limiter {
  const admitted: number[] = [];
  return plainLimiter(({ nowMs }) => {
    while (admitted[0] !== undefined && admitted[0] <= nowMs - 1_000) admitted.shift();
    if (admitted.length >= most) return TOO_MANY;
    admitted.push(nowMs);
    return null;
  });
}

/** Limits nothing. */
export function noLimiter(): Limiter {
  return plainLimiter(() => null);
}

/** A key that stops working and is repaired by the test. */
export type StoppingLimiter = Limiter & {
  /** From now on every request is refused. */
  stop(): void;
  recover(): void;
};

const STOPS = {
  insufficient_quota: {
    status: 429,
    code: "insufficient_quota",
    message: "You exceeded your current quota, please check your plan and billing details.",
    headers: {},
  },
  invalid_api_key: { status: 401, code: "invalid_api_key", message: "Incorrect API key provided.", headers: {} },
} as const satisfies Record<string, Rejection>;

/** Admits `after` requests and refuses all others for this reason until it recovers. */
export function stoppingLimiter(why: keyof typeof STOPS, after: number): StoppingLimiter {
  let left = after;
  const limiter = plainLimiter(() => {
    left -= 1;
    return left < 0 ? STOPS[why] : null;
  });
  return {
    ...limiter,
    stop: () => {
      left = 0;
    },
    recover: () => {
      left = Infinity;
    },
  };
}
