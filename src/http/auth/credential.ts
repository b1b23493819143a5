/** Where a request may carry its credential. This runs before the client is authenticated: one pass, of bounded length. */
import { CREDENTIAL_CHARS_MAX } from "../../limits.ts";
import { TOKEN_PREFIX } from "./token-prefix.ts";

/** The parts of a request that may carry a credential. */
export type Carrier = { path: string; header: (name: string) => string | undefined };

/**
 * The credential that a request carries; null if it carries none. OpenAI's clients send a bearer token, Anthropic's
 * `x-api-key`; programs whose only setting is a URL put it there: before the host, which reaches the gateway as Basic
 * credentials, or as the id of a rollout. Headers win over the path. A text that is longer than any credential is ignored.
 */
export function credentialOf({ path, header }: Carrier): string | null {
  const authorization = header("authorization") ?? "";
  return bearerOf(authorization) || basicOf(authorization) || keyOf(header) || tokenInPath(path);
}

function keyOf(header: Carrier["header"]): string {
  const key = header("x-api-key")?.trim() ?? "";
  return key.length <= CREDENTIAL_CHARS_MAX ? key : "";
}

function bearerOf(authorization: string): string {
  return parameterOf(authorization, "bearer");
}

/** What follows a scheme's name in an Authorization header; "" for another scheme, or more than a credential has. */
function parameterOf(authorization: string, scheme: string): string {
  const named = authorization.slice(0, scheme.length).toLowerCase() === scheme;
  // The name ends with a space: not every word that begins with it is the scheme.
  if (!named || authorization.charAt(scheme.length) !== " ") return "";
  const parameter = authorization.slice(scheme.length).trim();
  return parameter.length <= CREDENTIAL_CHARS_MAX ? parameter : "";
}

/** Of user and password the one that is a run token, else the password, else the user. */
function basicOf(authorization: string): string | undefined {
  const encoded = parameterOf(authorization, "basic");
  if (encoded === "" || !BASE64.test(encoded)) return undefined;
  const text = decoded(encoded);
  const colon = text.indexOf(":");
  const parts = colon < 0 ? [text] : [text.slice(colon + 1), text.slice(0, colon)];
  return parts.find((part) => part.startsWith(TOKEN_PREFIX)) ?? parts.find((part) => part !== "");
}

const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/** Text that no encoder made is no credential. */
function decoded(base64: string): string {
  try {
    return new TextDecoder().decode(Uint8Array.from(atob(base64), (byte) => byte.charCodeAt(0)));
  } catch {
    return "";
  }
}

const ROLLOUT_TOKEN = new RegExp(`^/rollout/(${TOKEN_PREFIX}[A-Za-z0-9._-]{1,${CREDENTIAL_CHARS_MAX}})/`);

function tokenInPath(path: string): string | null {
  return ROLLOUT_TOKEN.exec(path)?.[1] ?? null;
}
