/** Reads keys and headers of an upstream's configuration. Messages never quote a value: it may be a secret. */

/** A value read, or what is wrong with it; `field` is where, below the field that was read. */
export type Resolved<T> = { ok: true; value: T } | { ok: false; field: readonly string[]; message: string };

const SECRET_REFERENCE = /^secret:(.*)$/s;
/** A header's value may contain only these; fetch throws on others, and quotes the value. */
const HEADER_VALUE = /^[\t\x20-\x7e]*$/;
const HEADER_NAME = /^[a-z0-9!#$%&'*+.^_`|~-]+$/;
/** Headers that frame the request; configured ones would contradict the body that is sent. */
const FRAMING_HEADERS = new Set([
  "host",
  "content-type",
  "content-length",
  "content-encoding",
  "transfer-encoding",
  "connection",
]);

/** The key of an upstream; null where none is configured. */
export function resolveKey(
  configured: string | undefined,
  vars: Record<string, unknown>,
  goesInto: "header" | "text" = "header",
): Resolved<string | null> {
  if (configured === undefined || configured === "") return { ok: true, value: null };
  return resolveSecret(configured, vars, goesInto);
}

/** Configured headers by lower-case name. Those in `keyHeaders` contradict a key that is sent in one of them. */
export function resolveHeaders(
  configured: Record<string, string>,
  vars: Record<string, unknown>,
  keyHeaders: readonly string[],
): Resolved<Record<string, string>> {
  const headers: Record<string, string> = {};
  for (const [header, text] of Object.entries(configured)) {
    const name = header.toLowerCase();
    const wrong = (message: string) => ({ ok: false as const, field: [header], message });
    const read = resolveSecret(text, vars);
    if (!read.ok) return wrong(read.message);
    if (!HEADER_NAME.test(name)) return wrong("is not a header name");
    if (FRAMING_HEADERS.has(name)) return wrong("is set by the gateway");
    if (keyHeaders.includes(name)) return wrong("contradicts the key: set one of the two");
    headers[name] = read.value;
  }
  return { ok: true, value: headers };
}

/** `goesInto`: where the value is sent; a `text` may contain anything. */
function resolveSecret(
  configured: string,
  vars: Record<string, unknown>,
  goesInto: "header" | "text" = "header",
): Resolved<string> {
  const wrong = (message: string) => ({ ok: false as const, field: [], message });
  const secret = SECRET_REFERENCE.exec(configured)?.[1];
  const value = secret === undefined ? configured : vars[secret];
  if (secret !== undefined && (value === undefined || value === null || value === "")) {
    return wrong(`reads the secret ${secret}, which is not set`);
  }
  const whose = secret === undefined ? "contains" : `reads the secret ${secret}, which contains`;
  if (typeof value !== "string") return wrong(`${whose} something other than text`);
  if (goesInto === "text") return { ok: true, value };
  if (HEADER_VALUE.test(value) && value.trim() === value) return { ok: true, value };
  return wrong(`${whose} a line break, outer white space or a character that no header can carry`);
}
