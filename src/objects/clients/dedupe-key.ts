/** The key under which equal calls of a run share an answer: a hash of everything that determines it. */
import type { CallBody, CallFacts } from "../../call.ts";
import { NOT_COMPARED } from "../../recordings/compared.ts";
import { callContent } from "../../recordings/content.ts";

/** What JSON leaves out of the facts: `content` is a hash of others. */
const LEFT_OUT = Object.fromEntries(["content", ...NOT_COMPARED].map((name) => [name, undefined]));

/** SHA-256 of the body and of every fact that is compared. Prompts contain texts of strangers, so a weaker hash is not enough. */
export async function dedupeKeyOf(body: CallBody, facts: CallFacts): Promise<string> {
  return await hashOf(JSON.stringify([{ ...facts, ...LEFT_OUT }, body]));
}

/** The hash of what decides a call's answer, under which it is recorded. */
export async function contentHash(body: CallBody, facts: CallFacts): Promise<string> {
  return await hashOf(callContent(body, facts));
}

/** The SHA-256 of a text, as hexadecimal text. */
export async function hashOf(text: string): Promise<string> {
  return await sha256Hex(new TextEncoder().encode(text));
}

/** The SHA-256 of some bytes, as hexadecimal text. */
export async function sha256Hex(bytes: Uint8Array): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", bytes);
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
