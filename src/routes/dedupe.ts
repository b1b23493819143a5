/** The key under which equal calls of a run share an answer: a hash of everything that decides on it. */
import type { CallBody, CallFacts } from "../call.ts";

/** SHA-256 of the model, the cap and the body: texts of strangers stand in prompts, so nothing weaker will do. */
export async function dedupeKeyOf(body: CallBody, { model, maxTokens }: CallFacts): Promise<string> {
  return await sha256Hex(new TextEncoder().encode(JSON.stringify([model, maxTokens, body])));
}

/** The SHA-256 of some bytes, as hexadecimal text. */
export async function sha256Hex(bytes: Uint8Array): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", bytes);
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
