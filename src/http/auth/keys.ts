/** Key material made from the configured secrets: what an operator's key is compared with, what signs run tokens. */
import type { Keys } from "../context.ts";
import { DERIVED_KEY, type Credentials } from "./credentials.ts";

/** Separates this use of ADMIN_KEY from any other; changing it ends every run token signed without a SIGNING_KEY. */
const DERIVATION_LABEL = "fanout run token signing key, version 1";

const HMAC = { name: "HMAC", hash: "SHA-256" };
const encoder = new TextEncoder();

/**
 * Without a signing key one is derived from the operator's. Whoever has a run token can then try guesses of the operator's key
 * against it without sending a request: that is why a key has `SECRET_CHARS_MIN`, and why a fresh gateway has a signing key.
 */
export async function makeKeys({
  adminKey,
  signingKey = null,
  signingKeyPrevious = null,
  viewKey = null,
}: Pick<Credentials, "adminKey"> & Partial<Credentials>): Promise<Keys> {
  const signing = await signingKeyOf(adminKey, signingKey ?? DERIVED_KEY);
  const previous = signingKeyPrevious === null ? [] : [await signingKeyOf(adminKey, signingKeyPrevious)];
  const viewDigest = viewKey === null ? null : await digestOf(viewKey);
  return { adminDigest: await digestOf(adminKey), viewDigest, signing, accepted: [signing, ...previous] };
}

/** Whose key a text is, or null. */
export async function holderOf(candidate: string, keys: Keys): Promise<"operator" | "viewer" | null> {
  const digest = await digestOf(candidate);
  if (areEqual(digest, keys.adminDigest)) return "operator";
  return keys.viewDigest !== null && areEqual(digest, keys.viewDigest) ? "viewer" : null;
}

/**
 * Digests are compared, byte by byte to the end, so the time taken reveals neither the length of a key nor how much of a guess
 * is right.
 */
function areEqual(digest: Uint8Array, known: Uint8Array): boolean {
  let difference = digest.length ^ known.length;
  for (const [index, byte] of digest.entries()) difference |= byte ^ (known[index] ?? 0);
  return difference === 0;
}

async function digestOf(text: string): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", encoder.encode(text)));
}

async function signingKeyOf(adminKey: string, signingKey: string): Promise<CryptoKey> {
  return await hmacKey(
    signingKey === DERIVED_KEY ? await derive(encoder.encode(adminKey)) : encoder.encode(signingKey),
  );
}

async function derive(admin: Uint8Array): Promise<ArrayBuffer> {
  return crypto.subtle.sign("HMAC", await hmacKey(admin), encoder.encode(DERIVATION_LABEL));
}

function hmacKey(secret: Uint8Array | ArrayBuffer): Promise<CryptoKey> {
  return crypto.subtle.importKey("raw", secret, HMAC, false, ["sign", "verify"]);
}
