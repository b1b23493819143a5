/**
 * A single call that outlives its client: stored as a group of one and executed by a lane, so that whoever comes back with
 * its Idempotency-Key finds it running or its recorded answer. It still belongs to the parallel group it came in.
 */
import type { Context } from "hono";
import type { RunCaller } from "../../durable-objects/again.ts";
import type { SlotView } from "../../durable-objects/run/rpc.ts";
import type { AppEnv } from "../context.ts";
import { prefersAsync } from "../contract/groups.ts";
import type { QueryRequest } from "../contract/query.ts";
import { Refusal } from "../errors.ts";
import { slotError } from "../respond/slot.ts";
import { groupAnswer } from "./batch.ts";
import { answerAccepted } from "./group-answer.ts";
import { openGroup } from "./group-opening.ts";
import { GroupReader } from "./group-reader.ts";
import { queryReplyOf, wantsText } from "./query-reply.ts";

type Stored = { runId: string; run: RunCaller; call: QueryRequest; named: { key: string; hash: string } | null };

export async function storedQuery(c: Context<AppEnv>, { runId, run, call, named }: Stored): Promise<Response> {
  const { body, facts, deadlineMs, onLost, dedupe } = call;
  const rules = { named, count: 1, single: true, background: false, concurrency: 1, deadlineMs, onLost };
  const defaults = { onError: "continue", split: false, detach: true, errorStyle: null, namesCalls: false } as const;
  const calls = [{ body, facts, id: null }];
  const opened = await openGroup(c, runId, run, { calls, defaults: {}, dedupe, rules: { ...rules, ...defaults } });
  const reader = new GroupReader(run, opened.seq);
  const group = groupAnswer(runId, opened, reader);
  if (prefersAsync(c.req.header("prefer"))) return answerAccepted(c, group, await reader.look());
  const { parallelGroupId } = await reader.ended();
  const slot = (await reader.slotsFrom(0))[0];
  if (slot === undefined) throw new Error(`group ${opened.id} of one call has no slot`);
  if (slotError(slot) !== null && slot.reason !== null) throw new Refusal(slot.reason);
  if (opened.replayed) c.header("idempotent-replayed", "true");
  if (wantsText(c)) return c.text(slot.text ?? "");
  return c.json(queryReplyOf(opened.id, { ...slot, parallelGroupId }, textOf(slot)));
}

function textOf({ text, model, finishReason }: SlotView): { text: string; model: string; finishReason: string | null } {
  return { text: text ?? "", model: model ?? "", finishReason };
}
