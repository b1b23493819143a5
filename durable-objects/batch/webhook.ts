/** Notifies the operator's webhook of how a batch ended, until the webhook accepts it or the attempts are spent. */
import { isFinal } from "../../src/batch/lifecycle.ts";
import { webhookBody, webhookKey, type ToldStatus } from "../../src/batch/webhook.ts";
import type { ParsedConfig } from "../../src/env.ts";
import { WEBHOOK_RETRY_MS, WEBHOOK_TRIES_MAX } from "../../src/limits.ts";
import { postWebhook } from "../webhook-post.ts";
import type { Job } from "./store.ts";

type Delivery = NonNullable<Job["webhook"]>;

/** Makes the delivery that is due, if one is. Returns the delivery afterwards: the same object if nothing changed. */
export async function notifyEnd(parsed: ParsedConfig, job: Job, nowMs: number): Promise<Delivery> {
  const fresh = { id: `evt_${crypto.randomUUID().replaceAll("-", "")}`, tries: 0, atMs: nowMs, done: false };
  const delivery: Delivery = job.webhook ?? fresh;
  const { batch } = job;
  if (delivery.done) return delivery;
  const webhook = parsed.ok ? parsed.config.webhook : null;
  const key = webhook === null ? null : webhookKey(webhook.secret);
  if (webhook === null || key === null || !isFinal(batch)) return { ...delivery, done: true };
  const { id } = delivery;
  const body = webhookBody({ id, batchId: batch.id, status: finalStatus(job), createdAtS: Math.floor(nowMs / 1_000) });
  const tries = delivery.tries + 1;
  const isAccepted = await postWebhook({ url: webhook.url, key }, { id, body }, nowMs);
  const retryInMs = WEBHOOK_RETRY_MS * 2 ** delivery.tries;
  return { id, tries, atMs: nowMs + retryInMs, done: isAccepted || tries >= WEBHOOK_TRIES_MAX };
}

function finalStatus({ batch: { status } }: Job): ToldStatus {
  if (status === "completed" || status === "failed" || status === "expired" || status === "cancelled") return status;
  throw new Error(`a batch that is ${status} has not ended`);
}
