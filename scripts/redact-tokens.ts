/** Removes run tokens from output that is shown or stored: a request's path can contain one. */

/** The text with each run token replaced by its prefix. */
export function withoutTokens(text: string): string {
  return text.replace(/fo-(run|pull)-[\w.-]+/g, "fo-$1-…");
}
