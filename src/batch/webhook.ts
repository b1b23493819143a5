/**
 * Webhooks as OpenAI sends them: an event that names a batch, signed by the Standard Webhooks specification, so
 * that the OpenAI SDKs' `webhooks.unwrap` accepts it.
 */
import type { BatchStatus } from "./lifecycle.ts";

/** Statuses that are reported. */
export type ToldStatus = Extract<BatchStatus, "completed" | "failed" | "expired" | "cancelled">;

/** The body of the request. The signature covers its bytes: send them unchanged. */
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

/** The key in a secret: `whsec_` and base64, or any other text as it is. Null if it has no key. */
export function webhookKey(secret: string): Uint8Array | null {
  if (!secret.startsWith(PREFIX)) return secret === "" ? null : encoder.encode(secret);
  try {
    const key = Uint8Array.from(atob(secret.slice(PREFIX.length)), (char) => char.charCodeAt(0));
    return key.length === 0 ? null : key;
  } catch {
    return null;
  }
}

/** The signed data. A retried delivery keeps its id, by which receivers recognise it; `sentAtS` is that of this attempt. */
export type Delivery = { id: string; sentAtS: number; body: string };

/** The headers of a delivery. Receivers refuse a time that is more than five minutes from theirs. */
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
