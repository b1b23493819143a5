/** Removes run tokens from output that is shown or stored: a request's path can contain one. */
import type { Readable } from "node:stream";

/** The text with each run token replaced by its prefix. */
export function withoutTokens(text: string): string {
  return text.replace(/fo-(run|pull)-[\w.-]+/g, "fo-$1-…");
}

/** Removes tokens from streamed text. A word at the end of a piece is kept back, because it may continue in the next piece. */
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
