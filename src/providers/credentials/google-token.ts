/**
 * Access tokens for a Google service account: a signed assertion is exchanged for a token that lives an hour
 * (developers.google.com/identity/protocols/oauth2/service-account, "HTTP/REST").
 */
import * as z from "zod";
import { RESPONSE_BYTES_MAX } from "../../limits.ts";
import type { ServiceAccount } from "../config/auth.ts";
import { errorWords } from "../formats/response/error.ts";
import { readBody } from "../read-body.ts";

const GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer";
/** The longest life of an assertion that Google takes. */
const ASSERTION_S = 3_600;

/** A token, and when it ends, ms since 1970. Secret: never log or return it. */
export type AccessToken = { token: string; expiresMs: number };

/** A token, or why there is none. `status` null = no answer came. `message` quotes nothing that was sent. */
export type FetchedToken = { ok: true; value: AccessToken } | { ok: false; status: number | null; message: string };

export type TokenDeps = {
  fetch: (url: string, init: RequestInit) => Promise<Response>;
  /** Wall clock, ms since 1970. */
  now: () => number;
  signal: AbortSignal;
};

const reply = z.object({ access_token: z.string().min(1), expires_in: z.number().min(1) });

/** Fetches a token for a scope. Never rejects. */
export async function fetchGoogleToken(account: ServiceAccount, scope: string, deps: TokenDeps): Promise<FetchedToken> {
  const sentMs = deps.now();
  let assertion: string;
  try {
    assertion = await assertionOf(account, scope, Math.floor(sentMs / 1_000));
  } catch {
    return { ok: false, status: 401, message: "the private key of the service account cannot be read" };
  }
  // Called on its own: workerd's fetch refuses to be a method of another object.
  const { fetch, signal } = deps;
  const body = new URLSearchParams({ grant_type: GRANT, assertion }).toString();
  const headers = { "content-type": "application/x-www-form-urlencoded", "user-agent": "fanout" };
  try {
    const response = await fetch(account.tokenUrl, { method: "POST", headers, body, redirect: "manual", signal });
    const read = await readBody(response, RESPONSE_BYTES_MAX);
    const text = read.ok ? read.text : "";
    if (!response.ok) return { ok: false, status: response.status, message: wordsOf(text) };
    const parsed = reply.safeParse(JSON.parse(text));
    if (!parsed.success) return { ok: false, status: null, message: "the answer has no access_token" };
    const { access_token: token, expires_in: lifeS } = parsed.data;
    return { ok: true, value: { token, expiresMs: sentMs + lifeS * 1_000 } };
  } catch {
    return { ok: false, status: null, message: "no answer came" };
  }
}

/** The code of an OAuth error, which is a word: descriptions may quote the assertion. */
function wordsOf(text: string): string {
  const code = /^[a-z_]{1,40}$/.exec(errorWords(text).message)?.[0];
  return code ?? "the answer names no error";
}

async function assertionOf(
  { email, privateKey, keyId, tokenUrl }: ServiceAccount,
  scope: string,
  nowS: number,
): Promise<string> {
  const header = { alg: "RS256", typ: "JWT", ...(keyId === null ? {} : { kid: keyId }) };
  const claims = { iss: email, scope, aud: tokenUrl, iat: nowS, exp: nowS + ASSERTION_S };
  const signed = `${base64Url(JSON.stringify(header))}.${base64Url(JSON.stringify(claims))}`;
  const algorithm = { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("pkcs8", bytesOfPem(privateKey), algorithm, false, ["sign"]);
  const signature = await crypto.subtle.sign(algorithm.name, key, new TextEncoder().encode(signed));
  return `${signed}.${base64Url(new Uint8Array(signature))}`;
}

function base64Url(content: string | Uint8Array): string {
  const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
  return btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replace(/=+$/, "");
}

/** The bytes between the lines of a PEM. */
function bytesOfPem(pem: string): Uint8Array<ArrayBuffer> {
  const base64 = pem.replace(/-----[A-Z ]+-----/g, "").replace(/\s+/g, "");
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}
