/** What a limited server takes of one request, and what its limiter says to it. */

export type Arrival = {
  nowMs: number;
  /** Requests that were admitted and are not answered yet. */
  inFlight: number;
  /** Estimated from the bytes of the messages. */
  promptTokens: number;
  /** The request's cap of output tokens; null = it sets none. */
  capTokens: number | null;
};

export type Rejection = {
  status: number;
  /** OpenAI's `code` and Anthropic's `error.type`, which the server puts into the form of its protocol. */
  code: string;
  message: string;
  headers: Record<string, string>;
};

/** null = admitted. */
export type Verdict = { headers: Record<string, string>; rejection: null } | { rejection: Rejection };

export interface Limiter {
  arrive(arrival: Arrival): Verdict;
  /** The headers of the answer to an admitted request, which are read when it is sent. */
  headersAt(nowMs: number): Record<string, string>;
  /** An admitted request is answered with so many tokens. */
  answered(outputTokens: number, nowMs: number): void;
}

const NO_HEADERS: Record<string, string> = {};

/** A limiter that has neither headers nor figures of its own: `refuse` says why a request is refused, null = it is not. */
export function plainLimiter(refuse: (arrival: Arrival) => Rejection | null): Limiter {
  return {
    arrive: (arrival) => {
      const rejection = refuse(arrival);
      return rejection === null ? { headers: NO_HEADERS, rejection } : { rejection };
    },
    headersAt: () => NO_HEADERS,
    answered: () => undefined,
  };
}
