/**
 * A single call that is stored as a group of one: because it outlives its client, so that a request with the same
 * Idempotency-Key finds it running or its recorded answer, or because it may be more than one answer. The Worker of the client that waits for it executes it, and a lane does where no client
 * waits. It still belongs to the parallel group in which it arrived.
 */
import type { Context } from "hono";
import type { RunCaller } from "../../objects/clients/caller.ts";
import type { SlotView } from "../../objects/methods/groups.ts";
import type { AppEnv } from "../context.ts";
import { prefersAsync } from "../../contract/groups.ts";
import type { QueryRequest } from "../../contract/query.ts";
import { Refusal } from "../../errors.ts";
import { labelsOf } from "../../labels.ts";
import { reasonOf, slotError } from "../replies/slot.ts";
import { spentBefore } from "../replies/usage.ts";
import { groupAnswer } from "./batch.ts";
import { recordingOf } from "../recording.ts";
import { groupOfClient, openGroupDeps } from "./client-group.ts";
import { answerAccepted } from "./group-answer.ts";
import { openGroup } from "../../objects/clients/groups/open-group.ts";
import { GroupReader } from "../../objects/clients/groups/group-reader.ts";
import { PLAIN_RULES } from "../../objects/clients/groups/plain-rules.ts";
import { queryReply, wantsText, type AnswerText } from "./query-reply.ts";
import { noteGroup } from "../trace-header.ts";

type Stored = { runId: string; run: RunCaller; call: QueryRequest; named: { key: string; hash: string } | null };

export async function storedQuery(c: Context<AppEnv>, { runId, run, call, named }: Stored): Promise<Response> {
  const { body, facts, deadlineMs, onLost, dedupe } = call;
  const own = { idempotencyKey: named, count: 1, single: true, concurrency: 1, deadlineMs, onLost };
  const isAsync = prefersAsync(c.req.header("prefer"));
  // Without a key or an address, nobody else can read it.
  const detach = named !== null || isAsync;
  const recording = await recordingOf(c, runId);
  const replay = recording === null ? {} : { replay: recording };
  const step = labelsOf(facts);
  const labels = step === undefined ? {} : { step };
  const calls = [{ body, facts, id: null }];
  const opened = await openGroup(
    {
      ...{ calls, defaults: {}, dedupe, rules: { ...PLAIN_RULES, ...own, detach, ...replay, ...labels } },
      acceptedAtMs: c.get("acceptedAtMs"),
    },
    openGroupDeps(c, run, isAsync ? null : 1),
  );
  noteGroup(c, runId, opened);
  if (isAsync) {
    const reader = new GroupReader(run, opened.seq, c.req.raw.signal);
    return answerAccepted(c, groupAnswer(runId, opened, reader), await reader.look());
  }
  const reader = groupOfClient(c, run, opened, { ids: [], detach, showsSlots: false });
  const { parallelGroupId, remainingNanoUsd } = await reader.ended();
  // That of the opening lacks what the call has cost.
  c.set("remainingNanoUsd", remainingNanoUsd);
  const slot = (await reader.slotsFrom(0))[0];
  if (slot === undefined) throw new Error(`group ${opened.id} of one call has no slot`);
  if (slotError(slot) !== null && slot.reason !== null)
    throw new Refusal(reasonOf(slot), spentBefore(slot, slot.reason));
  if (opened.replayed) c.header("idempotent-replayed", "true");
  if (wantsText(c)) return c.text(slot.text ?? "");
  return c.body(queryReply(opened.id, { ...slot, parallelGroupId }, answerOf(slot)), 200, {
    "content-type": "application/json",
  });
}

function answerOf({ text, parts, model, finishReason, upstream, checks, course, replayed }: SlotView): AnswerText {
  const isJson = checks?.violation === null;
  return { text: text ?? "", parts, model: model ?? "", finishReason, upstream, isJson, course, replayed };
}
