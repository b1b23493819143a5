/** Answering with a group: as one JSON object, or as events while its slots end. */
import type { Context } from "hono";
import { usdOf } from "../../run/money/money.ts";
import type { GroupView, SlotView } from "../../objects/methods/groups.ts";
import type { AppEnv } from "../context.ts";
import type { IndependenceReply } from "../../contract/independence.ts";
import type { ErrorStyle } from "../../contract/fields.ts";
import { prefersAsync } from "../../contract/groups.ts";
import { dollars, Refusal } from "../../errors.ts";
import { aggregationOf } from "../replies/aggregation.ts";
import { batchJson, runningJson } from "../replies/batch-json.ts";
import { completedEvent, NDJSON, slotEvent, SSE, startedEvent, type Framing } from "../replies/batch-lines.ts";
import { slotError } from "../replies/slot.ts";
import { spentBefore } from "../replies/usage.ts";
import { streamed } from "../replies/stream.ts";
import type { GroupSource } from "../../objects/clients/groups/group-reader.ts";
import { combiningCalls } from "./combining/make-calls.ts";
import { logBrokenOff } from "../line-budget.ts";
import { remainingUsdText } from "../under-run.ts";

/** A group to answer with. `headers` are added to the answer's. */
export type GroupAnswer = {
  runId: string;
  id: string;
  count: number;
  effectiveParallel: number;
  reader: GroupSource;
  style: ErrorStyle;
  remainingNanoUsd: number | null;
  headers?: Record<string, string>;
  /** Set if it awaits its confirmation. */
  isHeld?: true;
  /** What the answer says about the independence of its calls; absent = nothing. */
  independence?: IndependenceReply;
};

/** Answers in the form that the client's `Accept` names, when or as the group ends. */
export async function answerGroup(c: Context<AppEnv>, group: GroupAnswer): Promise<Response> {
  const { reader, style, count } = group;
  const framing = framingOf(c.req.header("accept"));
  if (framing !== null) return streamPieces(c, group, events(c, group, framing), framing);
  if (style === "throw") {
    // The status depends on how the group ends, so nothing can be sent before.
    const { stop } = await reader.ended();
    const failure = await firstFailure(reader, count, stop?.hasCancelled === true);
    if (failure !== null) throw failure;
  }
  return streamPieces(c, group, json(c, group), JSON_PIECES);
}

/** Whether the answer is that the group was accepted: its client does not wait, or it awaits its confirmation. */
export function isAccepted(c: Context<AppEnv>, { isHeld }: Pick<GroupAnswer, "isHeld">): boolean {
  return isHeld === true || prefersAsync(c.req.header("prefer"));
}

/** For a client that waits for results: why there are none, and what to do. */
function unconfirmed(id: string, { worstNanoUsd, calls }: NonNullable<GroupView["held"]>) {
  const cost = `${calls} calls for up to ${dollars(usdOf(worstNanoUsd))}`;
  const message = `the group has not started: ${cost} exceed confirm_over of the run; to start it, send POST /groups/${id}/confirm`;
  const code = "awaiting_confirmation";
  return { message, type: "permission_error", code, param: null, retryable: false } as const;
}

/** 202: the group continues, and `location` names it. `more`: further fields of the answer. */
export function answerAccepted(c: Context<AppEnv>, group: GroupAnswer, view: GroupView, more: object = {}): Response {
  const applied = prefersAsync(c.req.header("prefer")) ? { "preference-applied": "respond-async" } : undefined;
  const headers = { ...headersOf(c, group), location: `/groups/${group.id}`, ...applied };
  const unanswered =
    group.isHeld === true && view.held !== undefined ? { error: unconfirmed(group.id, view.held) } : {};
  return Response.json(
    { ...runningJson(view), ...group.independence, ...unanswered, ...more },
    { status: 202, headers },
  );
}

/** The framing that the client requests; null = one JSON object. */
export function framingOf(accept: string | undefined): Framing | null {
  if (accept === undefined) return null;
  if (accept.includes("application/x-ndjson")) return NDJSON;
  return accept.includes("text/event-stream") ? SSE : null;
}

/** White space is allowed between any two tokens of a JSON text. */
export const JSON_PIECES = { contentType: "application/json", keepAlive: " " };

/** Streams what takes its time under the headers of an answer made under a run. */
export function streamPieces(
  c: Context<AppEnv>,
  group: Pick<GroupAnswer, "runId" | "remainingNanoUsd" | "headers">,
  pieces: AsyncGenerator<string>,
  { contentType, keepAlive }: { contentType: string; keepAlive: string },
): Response {
  const { body, pumped } = streamed(pieces, {
    keepAlive,
    failed: (error) => {
      // A reader that waits for a group stops when its client has left.
      if (!c.req.raw.signal.aborted) logBrokenOff("an answer", error);
    },
  });
  c.executionCtx.waitUntil(pumped);
  return new Response(body, { headers: { ...headersOf(c, group), "content-type": contentType } });
}

function headersOf(
  c: Context<AppEnv>,
  { runId, remainingNanoUsd, headers }: Pick<GroupAnswer, "runId" | "remainingNanoUsd" | "headers">,
): Record<string, string> {
  return {
    "x-request-id": c.get("requestId"),
    "x-fanout-run": runId,
    "x-fanout-budget-remaining-usd": remainingUsdText(remainingNanoUsd),
    "cache-control": "no-store",
    ...headers,
  };
}

async function* json(c: Context<AppEnv>, { runId, reader, style, independence }: GroupAnswer): AsyncGenerator<string> {
  const group = await reader.ended();
  const slotsFrom = (index: number) => reader.slotsFrom(index);
  const makeCalls = combiningCalls(c, runId, group);
  yield* batchJson({ group, style, more: independence ?? {}, slotsFrom, makeCalls });
}

async function* events(c: Context<AppEnv>, group: GroupAnswer, { frame }: Framing): AsyncGenerator<string> {
  const { id: groupId, reader, style } = group;
  let id = 1;
  const framed = (event: { type: string }): string => frame(event.type, id++, JSON.stringify(event));
  const slotFrame = (slot: SlotView): string => frame("slot", id++, slotEvent(groupId, slot, style));
  yield framed({ ...startedEvent(group), ...group.independence });
  for await (const slots of reader.slotsAsTheyEnd()) yield slots.map(slotFrame).join("");
  const view = await reader.ended();
  const { aggregate } = view;
  const slotsFrom = (index: number) => reader.slotsFrom(index);
  const source = { group: view, slotsFrom, makeCalls: combiningCalls(c, group.runId, view) };
  const combined = aggregate === undefined ? undefined : await aggregationOf(aggregate, source);
  yield framed(completedEvent(view, combined));
}

/** The failure of the first slot, in input order, that did not complete; what an early stop has cancelled is no failure. */
async function firstFailure(reader: GroupSource, count: number, wasStopped: boolean): Promise<Refusal | null> {
  for (let from = 0; from < count;) {
    const slots = await reader.slotsFrom(from);
    for (const slot of slots) {
      if (wasStopped && slot.state === "cancelled") continue;
      if (slotError(slot) !== null && slot.reason !== null)
        return new Refusal(slot.reason, spentBefore(slot, slot.reason));
    }
    if (slots.length === 0) return null;
    from += slots.length;
  }
  return null;
}
