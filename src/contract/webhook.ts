/** What a run or a group asks the operator's webhook to be notified of. */
import * as z from "zod";
import type { Notify } from "../call.ts";
import { strictFields } from "./strict-fields.ts";
import { atFirstUse } from "../at-first-use.ts";

/** The field of runs, batches and graphs. The address is the operator's: no request names one. */
export const webhookField = atFirstUse(() =>
  strictFields({
    on_end: z.boolean().optional().meta({ description: "Whether the end is reported, with its status; default false" }),
    on_escalation: z.boolean().optional().meta({
      description:
        "Whether it is reported if a `P0` call fails for good, or a vote that escalates decides nothing: once for a group; of a run, for each of its groups. Default false",
    }),
  }).meta({
    description:
      "What the operator's webhook (`WEBHOOK_URL`) is notified of, by a signed request; 400 if the gateway has no webhook. Child runs do not inherit it",
  }),
);

/** What of a run the webhook is notified of, as the run's document shows it. */
export const shownWebhook = atFirstUse(() =>
  z
    .object({ on_end: z.boolean(), on_escalation: z.boolean() })
    .nullable()
    .meta({ description: "What of the run, and of its groups, the operator's webhook is notified of; null: nothing" }),
);

/** The field as the objects have it; nothing = nothing is reported. */
export function notifyOf(sent: z.infer<ReturnType<typeof webhookField>> | undefined): { notify?: Notify } {
  const notify: Notify = {
    ...(sent?.on_end === true && { onEnd: true }),
    ...(sent?.on_escalation === true && { onEscalation: true }),
  };
  return Object.keys(notify).length === 0 ? {} : { notify };
}
