/**
 * Webhooks as OpenAI sends them: an event that names a batch, signed as the Standard Webhooks specification says, so
 * that the OpenAI SDKs' `webhooks.unwrap` accepts it.
 */
import type { BatchStatus } from "./lifecycle.ts";

/** Statuses whose arrival is told. */
export type ToldStatus = Extract<BatchStatus, "completed" | "failed" | "expired" | "cancelled">;

/** The body of the request. Its bytes are what is signed: send them as they are. */
export function webhookBody(event: { id: string; batchId: string; status: ToldStatus; createdAtS: number }): string {
  return JSON.stringify({
    id: event.id,
    object: "event",
    created_at: event.createdAtS,
    type: `batch.${event.status}`,
    data: { id: event.batchId },
  });
}

const PREFIX = "whsec_";
const encoder = new TextEncoder();

/** The key that a secret writes: `whsec_` and base64, or any other text as it stands. null = it holds no key. */
export function webhookKey(secret: string): Uint8Array | null {
  if (!secret.startsWith(PREFIX)) return secret === "" ? null : encoder.encode(secret);
  try {
    const key = Uint8Array.from(atob(secret.slice(PREFIX.length)), (char) => char.charCodeAt(0));
    return key.length === 0 ? null : key;
  } catch {
    return null;
  }
}

/** What is signed. A delivery that is tried again keeps its id, by which receivers know it; `sentAtS` is of this try. */
export type Delivery = { id: string; sentAtS: number; body: string };

/** The headers of a delivery. Receivers refuse one whose time is more than five minutes from theirs. */
export async function webhookHeaders(
  { id, sentAtS, body }: Delivery,
  key: Uint8Array,
): Promise<Record<string, string>> {
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const signer = await crypto.subtle.importKey("raw", key, algorithm, false, ["sign"]);
  const signature = await crypto.subtle.sign("HMAC", signer, encoder.encode(`${id}.${sentAtS}.${body}`));
  return {
    "content-type": "application/json",
    "webhook-id": id,
    "webhook-timestamp": String(sentAtS),
    "webhook-signature": `v1,${btoa(String.fromCharCode(...new Uint8Array(signature)))}`,
  };
}
