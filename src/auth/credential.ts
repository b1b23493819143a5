/** Where a request may carry its credential. */
import { TOKEN_PREFIX } from "./token.ts";

/** What is looked at of a request. */
export type Carrier = { path: string; header: (name: string) => string | undefined };

/**
 * The credential that a request carries; null where it carries none. OpenAI's clients send a bearer token, Anthropic's
 * `x-api-key`; programs whose only setting is a URL put it there: before the host, which reaches the gateway as Basic
 * credentials, or as the id of a rollout. Headers win over the path.
 */
export function credentialOf({ path, header }: Carrier): string | null {
  const authorization = header("authorization") ?? "";
  const found = bearerOf(authorization) ?? basicOf(authorization) ?? header("x-api-key")?.trim();
  return found || tokenInPath(path);
}

function bearerOf(authorization: string): string | undefined {
  return /^Bearer +(.+?) *$/i.exec(authorization)?.[1];
}

/** Of user and password the one that is a run token, else the password, else the user. */
function basicOf(authorization: string): string | undefined {
  const encoded = /^Basic +([A-Za-z0-9+/]+={0,2}) *$/i.exec(authorization)?.[1];
  if (encoded === undefined) return undefined;
  const text = decoded(encoded);
  const colon = text.indexOf(":");
  const parts = colon < 0 ? [text] : [text.slice(colon + 1), text.slice(0, colon)];
  return parts.find((part) => part.startsWith(TOKEN_PREFIX)) ?? parts.find((part) => part !== "");
}

/** Text that no encoder made is no credential. */
function decoded(base64: string): string {
  try {
    return new TextDecoder().decode(Uint8Array.from(atob(base64), (byte) => byte.charCodeAt(0)));
  } catch {
    return "";
  }
}

const ROLLOUT_TOKEN = new RegExp(`^/rollout/(${TOKEN_PREFIX}[A-Za-z0-9._-]+)/`);

function tokenInPath(path: string): string | null {
  return ROLLOUT_TOKEN.exec(path)?.[1] ?? null;
}
