/**
 * Keeps provider credentials out of everything that leaves the upstream module: texts, headers, and the fields of outcomes. Bytes on
 * their way to a client are in relay/redact.ts. A secret is found in plain and with JSON escapes, also in JSON inside of JSON, since
 * whoever reads the text may unescape it.
 */
import type { Classification } from "../call.ts";
import type { Reason } from "../errors.ts";
import { NAME_CHARS_MAX, UPSTREAM_MESSAGE_CHARS_MAX } from "../limits.ts";
import { secretParts } from "./config/auth.ts";
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
type Secrets = Pick<Upstream, "apiKey" | "keys" | "auth" | "headers">;

/**
 * This upstream's own keys, whichever of them was sent, and the configured header values that are long enough to be secrets.
 */
export function ownSecrets(upstream: Secrets): readonly string[] {
  const known = secretsOf.get(upstream);
  if (known !== undefined) return known;
  const secrets = secretsIn(upstream);
  secretsOf.set(upstream, secrets);
  return secrets;
}

/** The secrets of each upstream as it is configured: every answer is searched for them several times. */
const secretsOf = new WeakMap<Secrets, readonly string[]>();

function secretsIn({ apiKey, keys, auth, headers }: Secrets): string[] {
  const own = apiKey === null || apiKey === "" ? [] : [apiKey];
  const secrets = (keys !== undefined ? keys.map(({ key }) => key) : own).flatMap((key) => secretParts(key, auth));
  for (const name in headers) {
    const value = headers[name];
    if (value === undefined || PUBLIC_HEADERS.has(name)) continue;
    // Of `Bearer KEY`, an upstream may quote the key alone.
    const credential = value.slice(value.indexOf(" ") + 1);
    if (credential.length >= SECRET_CHARS_MIN) secrets.push(credential);
    else if (value.length >= SECRET_CHARS_MIN) secrets.push(value);
  }
  return secrets;
}

/** Text with this upstream's own secrets blanked; the same string when none occurs. */
export function withoutOwnSecrets(text: string, upstream: Secrets): string {
  let clean = text;
  const hasEscapes = text.includes("\\");
  for (const secret of ownSecrets(upstream)) {
    if (clean.includes(secret)) clean = clean.replaceAll(secret, REDACTED);
    if (hasEscapes && mayEscape(clean, secret)) clean = clean.replace(escapedForm(secret), REDACTED);
  }
  return clean;
}

/** Null, or the id of an upstream's answer as it is stored. */
export function shownId(id: string | null, upstream: Secrets): string | null {
  return id === null ? null : withoutOwnSecrets(id, upstream);
}

/** Most backslashes of one escape: three levels of JSON in JSON have seven. The bound keeps a search linear. */
export const ESCAPE_BACKSLASHES_MAX = 8;

/** Characters of a secret that JSON may escape with a backslash alone. */
export const SHORT_ESCAPED = /[/"\\]/;

/**
 * Whether a text may have an escape of a character of the secret. Few texts have one: most escapes are of line ends, quotes and other
 * alphabets.
 */
function mayEscape(text: string, secret: string): boolean {
  return SHORT_ESCAPED.test(secret) || /\\u00[2-7]/i.test(text);
}

/** The pattern of each secret, as many as are configured. */
const escapedForms = new Map<string, RegExp>();

/** Matches a secret any of whose characters may be escaped. */
function escapedForm(secret: string): RegExp {
  const known = escapedForms.get(secret);
  if (known !== undefined) return known;
  const form = new RegExp(Array.from(secret, formOf).join(""), "g");
  escapedForms.set(secret, form);
  return form;
}

function formOf(character: string): string {
  const code = character.charCodeAt(0).toString(16).padStart(4, "0");
  const hex = code.replace(/[a-f]/g, (letter) => `[${letter}${letter.toUpperCase()}]`);
  const plain = character.replace(/[^\w-]/, "\\$&");
  const escapes = `\\\\{1,${ESCAPE_BACKSLASHES_MAX}}(?:u${hex}${SHORT_ESCAPED.test(character) ? `|${plain}` : ""})`;
  return `(?:${escapes}|${plain})`;
}

/** An outcome without this upstream's own secrets, in whatever field the upstream has quoted them. */
export function withoutSecretsIn<Ended extends Classification>(ended: Ended, upstream: Secrets): Ended {
  const clean = (text: string): string => withoutOwnSecrets(text, upstream);
  if (ended.kind === "failure") return { ...ended, reason: cleanReason(ended.reason, clean) };
  const { model, finishReason, usage } = ended;
  const tier = usage?.serviceTier;
  return {
    ...ended,
    model: clean(model),
    finishReason: finishReason === null ? null : clean(finishReason),
    usage: usage === null || tier === undefined ? usage : { ...usage, serviceTier: clean(tier) },
  };
}

/** The texts of a reason; its other facts are numbers and names of the gateway's own. */
function cleanReason<R extends Reason>(reason: R, clean: (text: string) => string): R {
  const texts = Object.entries(reason).filter(([, fact]) => typeof fact === "string");
  const changed = texts.flatMap(([name, fact]) => {
    const cleaned = clean(String(fact));
    return cleaned === fact ? [] : [[name, cleaned] as const];
  });
  return changed.length === 0 ? reason : { ...reason, ...Object.fromEntries(changed) };
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
