/** A tape: the requests to an upstream and its answers. Data only: it crosses object boundaries and is written to files. */
import type { Endpoint } from "../call.ts";

/** `record`: every call is sent, and its answer recorded. `replay`: no call is sent. `hybrid`: calls that are not on the tape are sent and recorded. */
export const CASSETTE_MODES = ["record", "replay", "hybrid"] as const;
export type CassetteMode = (typeof CASSETTE_MODES)[number];

/** What decides the answer. `call`: a native call; else a whole request of that endpoint. */
export type TapedRequest = {
  endpoint: Endpoint | "call";
  /** As the upstream knows it. */
  model: string;
  /** The client's headers that change the answer; absent = none. */
  headers?: Readonly<Record<string, string>>;
  /** The part of the client's query that goes on; absent = none. */
  query?: string;
  /** The request as JSON, without its model. */
  body: Readonly<Record<string, unknown>>;
};

/** An answer as its upstream wrote it. */
export type TapedAnswer = {
  status: number;
  contentType: string;
  /** The body in the pieces in which it arrived; bytes that are no UTF-8 are not recorded. */
  chunks: readonly string[];
};

/** A request as a tape keeps it: whole, or the beginning of a long one, which then has its key beside it. */
export type KeptRequest = { request: TapedRequest } | { cut: { model: string; text: string; key: string } };

/** One entry of a tape. */
export type Exchange = KeptRequest & { answer: TapedAnswer };
