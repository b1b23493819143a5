/** The rule that a request asks for notifications only of a gateway that has a webhook. */
import type { Context } from "hono";
import { Refusal } from "../../errors.ts";
import type { Notify } from "../../call.ts";
import type { AppEnv } from "../context.ts";

/** Refuses a request that asks for notifications of a gateway that has no webhook. */
export function requireWebhook(c: Context<AppEnv>, { notify }: { notify?: Notify }): void {
  if (notify === undefined || c.get("config").webhook !== null) return;
  const message = "webhook: this gateway has none, because WEBHOOK_URL is not set; leave it out, or ask its operator";
  throw new Refusal({ reason: "invalid_request", message, param: "webhook" });
}
