/** Sends an attempt to the pull workers of its run, in place of the network: it waits on the run's board for its answer. */
import type { Lease } from "../../call.ts";
import { LONG_POLL_MS } from "../../limits.ts";
import type { PullOfferCall, PullReply } from "../methods/pull.ts";
import type { RunCaller } from "./caller.ts";

/** The calls of a run object that this needs. */
export type PullRun = Pick<RunCaller, "callWithRetry" | "notify">;

/** Resolves with a worker's answer. Rejects when `signal` aborts, and takes the item off the board. */
export function pulledFetch(
  run: PullRun,
  lease: Lease,
  signal: AbortSignal,
): (url: string, init: RequestInit) => Promise<Response> {
  return async (_url, { body }) => {
    const { attemptId, upstream, model, timeoutMs } = lease;
    const offer = {
      attemptId,
      upstream,
      model,
      requestJson: await new Response(body ?? null).text(),
      dueMs: Date.now() + timeoutMs,
    };
    const { promise: left, reject: leave } = Promise.withResolvers<never>();
    const withdraw = (): void => {
      void run.notify((stub) => stub.withdraw(attemptId));
      leave(signal.reason);
    };
    signal.throwIfAborted();
    signal.addEventListener("abort", withdraw, { once: true });
    // The request travels again only after a restart, which has forgotten it.
    let isKnown = false;
    for (;;) {
      const sent: PullOfferCall = isKnown ? { ...offer, requestJson: null } : offer;
      const waiting: Promise<PullReply> = run.callWithRetry<PullReply>((stub) => stub.pullOffer(sent, LONG_POLL_MS));
      const reply: PullReply = await Promise.race([waiting, left]);
      isKnown = reply.state === "waiting";
      if (reply.state !== "answered") continue;
      signal.removeEventListener("abort", withdraw);
      return new Response(reply.answer.body, { status: reply.answer.status, headers: JSON_TYPE });
    }
  };
}

const JSON_TYPE = { "content-type": "application/json" };
