/** What the provider of the clients' tests keeps of a request, and how it counts. */
import type { IncomingHttpHeaders } from "node:http";

/** One request with what became of it. */
export type Exchange = {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  /** The body, byte for byte. */
  body: Buffer;
  /** The body as JSON; undefined if it is not JSON. */
  json: unknown;
  status: number | null;
  answer: Buffer;
  /** `performance.now()` when the caller closed the connection before the answer's end; null = it stayed. */
  leftAtMs: number | null;
};

export type Tokens = { prompt: number; completion: number };

/** The vector of every embedding: numbers that float32 holds exactly. */
export const EMBEDDING: readonly number[] = [0.5, -0.25, 0.125];

/** Four bytes to a token, as everywhere in these tests. */
export function tokensIn(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / 4);
}
