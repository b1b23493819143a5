/** Key material made from the configured secrets: what an operator's key is compared with, what signs run tokens. */
import type { Keys } from "../context.ts";

/** Separates this use of ADMIN_KEY from any other; changing it ends every run token signed without a SIGNING_KEY. */
const DERIVATION_LABEL = "fanout run token signing key, version 1";

const HMAC = { name: "HMAC", hash: "SHA-256" };
const encoder = new TextEncoder();

/** Without a signing key one is derived from the operator's: run tokens never help to guess the key itself. */
export async function makeKeys(adminKey: string, signingKey: string | null): Promise<Keys> {
  const admin = encoder.encode(adminKey);
  const adminDigest = new Uint8Array(await crypto.subtle.digest("SHA-256", admin));
  const secret = signingKey === null ? await derive(admin) : encoder.encode(signingKey);
  return { adminDigest, signing: await hmacKey(secret) };
}

/**
 * Whether a text is the operator's key. Digests are compared, byte by byte to the end, so the time taken reveals neither
 * the length of the key nor how much of a guess is right.
 */
export async function isAdminKey(candidate: string, { adminDigest }: Keys): Promise<boolean> {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", encoder.encode(candidate)));
  let difference = digest.length ^ adminDigest.length;
  for (const [index, byte] of digest.entries()) difference |= byte ^ (adminDigest[index] ?? 0);
  return difference === 0;
}

async function derive(admin: Uint8Array): Promise<ArrayBuffer> {
  return crypto.subtle.sign("HMAC", await hmacKey(admin), encoder.encode(DERIVATION_LABEL));
}

function hmacKey(secret: Uint8Array | ArrayBuffer): Promise<CryptoKey> {
  return crypto.subtle.importKey("raw", secret, HMAC, false, ["sign", "verify"]);
}
