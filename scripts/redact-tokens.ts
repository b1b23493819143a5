/** Run tokens in output that is shown and kept: a request's line names its path, and a path may hold one. */
import type { Readable } from "node:stream";

/** The text with every run token cut to what tells that it was one. */
export function withoutTokens(text: string): string {
  return text.replace(/fo-run-[\w.-]+/g, "fo-run-…");
}

/** Hands a stream's text on without tokens. A word that may go on in the next piece waits for it. */
export function forwardWithoutTokens(stream: Readable, forward: (text: string) => void): void {
  let held = "";
  stream.setEncoding("utf8").on("data", (piece: string) => {
    const text = held + piece;
    const wordAt = text.search(/\S*$/);
    held = text.slice(wordAt);
    if (wordAt > 0) forward(withoutTokens(text.slice(0, wordAt)));
  });
  stream.once("end", () => forward(withoutTokens(held)));
}
