/** Keeps provider credentials out of everything that leaves the upstream module. */
import { NAME_CHARS_MAX, UPSTREAM_MESSAGE_CHARS_MAX } from "../limits.ts";
import type { Upstream } from "./config/types.ts";

/** Replaces a credential. */
export const REDACTED = "[redacted]";

/** Shorter header values are words such as `true` or a version; blanking them would only mangle the text. */
const SECRET_CHARS_MIN = 8;

/** Headers whose values are documented words, which an answer may well contain. */
const PUBLIC_HEADERS = new Set(["anthropic-version", "anthropic-beta", "user-agent"]);

/** Longer than any message shown: redaction runs before the cut, so that a cut cannot leave half a key unrecognised. */
const SCANNED_CHARS_MAX = 16_384;

/** Credentials by shape, whole or already starred out by the provider: `Bearer …`, `sk-…` and its cousins, Google's. */
const CREDENTIALS =
  /\bbearer\s+[^\s"',;]+|\b(?:sk|pk|rk|gsk|xai|fw|nvapi|hf|r8|pplx|api|key)[-_][\w*.-]{6,}|\bAIza[\w*-]{6,}/gi;

/** The parts of an upstream's configuration that must not appear in answers. */
type Secrets = Pick<Upstream, "apiKey" | "keys" | "headers">;

/**
 * This upstream's own keys, whichever of them was sent, and the configured header values that are long enough to be secrets.
 */
export function ownSecrets({ apiKey, keys, headers }: Secrets): string[] {
  const secrets = keys !== undefined ? keys.map(({ key }) => key) : apiKey === null || apiKey === "" ? [] : [apiKey];
  for (const name in headers) {
    const value = headers[name];
    if (value === undefined || value.length < SECRET_CHARS_MIN || PUBLIC_HEADERS.has(name)) continue;
    secrets.push(value);
  }
  return secrets;
}

/** Text with this upstream's own secrets blanked; the same string when none occurs. */
export function withoutOwnSecrets(text: string, upstream: Secrets): string {
  let clean = text;
  for (const secret of ownSecrets(upstream)) if (clean.includes(secret)) clean = clean.replaceAll(secret, REDACTED);
  return clean;
}

/** An upstream's words fit to be shown: no credential of any known shape, one line of white space, bounded length. */
export function shownMessage(text: string, upstream: Secrets): string {
  const clean = withoutOwnSecrets(text.slice(0, SCANNED_CHARS_MAX), upstream)
    .replace(CREDENTIALS, REDACTED)
    .replace(/\s+/g, " ")
    .trim();
  if (clean.length <= UPSTREAM_MESSAGE_CHARS_MAX) return clean;
  return `${clean.slice(0, UPSTREAM_MESSAGE_CHARS_MAX - 1).toWellFormed()}…`;
}

/** Keys by shapes that occur in no name of a field, a type or a code. */
const KEYS = /\bbearer\s+[^\s"',;\\]+|\b(?:sk|pk|rk|gsk|xai|nvapi)-[\w*.-]{6,}|\bAIza[\w*-]{6,}/gi;

/** An upstream's error body without credentials: whole, and JSON if it was, for clients read its fields. */
export function redacted(text: string, upstream: Upstream): string {
  return withoutOwnSecrets(text, upstream).replace(KEYS, REDACTED);
}

/** The code of an upstream's error fit to be shown: without credentials, one line, no longer than a name. */
export function shownCode(code: string, upstream: Upstream): string {
  const clean = redacted(code.slice(0, SCANNED_CHARS_MAX), upstream).replace(/\s+/g, " ").trim();
  return clean.slice(0, NAME_CHARS_MAX).toWellFormed();
}
