/** One delivery to the operator's webhook, signed. */
import { webhookHeaders } from "../src/batch/webhook.ts";
import { WEBHOOK_TIMEOUT_MS } from "../src/limits.ts";

/** Posts an event. True if the webhook accepted it. Redirects are not followed: what is signed is for this address alone. */
export async function postWebhook(
  { url, key }: { url: string; key: Uint8Array },
  { id, body }: { id: string; body: string },
  nowMs: number,
): Promise<boolean> {
  const headers = await webhookHeaders({ id, sentAtS: Math.floor(nowMs / 1_000), body }, key);
  try {
    const signal = AbortSignal.timeout(WEBHOOK_TIMEOUT_MS);
    const answer = await fetch(url, { method: "POST", headers, body, redirect: "manual", signal });
    await answer.body?.cancel();
    return answer.ok;
  } catch {
    return false;
  }
}
