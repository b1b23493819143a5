/** `POST /groups/cancel`: stops what a program has under way, by the keys of its requests, and says what that has cost. */
import type { Context } from "hono";
import { requireRun } from "../auth/middleware.ts";
import { usdOf } from "../../run/money/money.ts";
import type { AppEnv } from "../context.ts";
import { parseBody } from "../../contract/body.ts";
import { parseCancelGroups, type CancelGroupsDocument } from "../../contract/cancel-groups.ts";
import { Refusal } from "../../errors.ts";
import { CANCEL_LOOK_FIRST_MS, CANCEL_LOOK_MS_MAX } from "../../limits.ts";
import type { CancelGroupsReply } from "../../objects/methods/groups.ts";
import { RunCaller } from "../../objects/clients/caller.ts";
import { bodyRoom } from "../body-bound.ts";
import type { Handlers } from "../handler.ts";

export const cancelGroupsHandlers = { "POST /groups/cancel": cancelGroups } satisfies Partial<Handlers>;

async function cancelGroups(c: Context<AppEnv>): Promise<Response> {
  const run = new RunCaller(c.env, requireRun(c));
  const body = await parseBody(c.req.raw, bodyRoom(c));
  if (!body.ok) throw new Refusal(body.reason);
  const request = parseCancelGroups(body.value);
  if (!request.ok) throw new Refusal(request.reason);
  const { idempotency_keys: keys, ids, in_flight: inFlight, wait_ms } = request.value;
  const untilMs = Date.now() + wait_ms;
  for (let waitMs = CANCEL_LOOK_FIRST_MS; ; waitMs = Math.min(2 * waitMs, CANCEL_LOOK_MS_MAX)) {
    const reply = await run.callWithRetry<CancelGroupsReply>((stub) => stub.cancelGroups({ keys, ids, inFlight }));
    const leftMs = untilMs - Date.now();
    if (reply.running.length === 0 || leftMs <= 0 || c.req.raw.signal.aborted) return c.json(shown(reply));
    // The run's object does not wait: it may sleep while the calls end.
    await scheduler.wait(Math.min(waitMs, leftMs));
  }
}

function shown({ ids, running, counts, costNanoUsd, unknown }: CancelGroupsReply): CancelGroupsDocument {
  const found = { groups: ids.length, ids, running: running.length };
  return { object: "cancellation", ...found, counts, spent_usd: usdOf(costNanoUsd), unknown };
}
