/** Calls that the gateway makes for a client beside those that it sent: a group of the run like any other, which this Worker executes. */
import type { Context } from "hono";
import type { AnswerParts } from "../../../call.ts";
import type { Spent } from "../../../run/answers/calls.ts";
import type { AppEnv } from "../../context.ts";
import type { ParsedCall } from "../../../contract/call.ts";
import type { Reason } from "../../../errors.ts";
import { isLabelled } from "../../../labels.ts";
import { firstCapacity } from "../../../executors/group-executor.ts";
import { partsOfSlot } from "../../replies/parts.ts";
import { reasonOf, slotError } from "../../replies/slot.ts";
import { slotPages } from "../../replies/slot-pages.ts";
import type { IdempotencyKey } from "../../../objects/methods/types.ts";
import { RunCaller } from "../../../objects/clients/caller.ts";
import type { GroupSource } from "../../../objects/clients/groups/group-reader.ts";
import { openGroup } from "../../../objects/clients/groups/open-group.ts";
import { PLAIN_RULES } from "../../../objects/clients/groups/plain-rules.ts";
import { groupOfClient, openGroupDeps } from "../client-group.ts";
import { noteGroup } from "../../trace-header.ts";

/** `name`: under which the group is found again; null = nobody else reads it. `detach`: whether it goes on without its client. */
export type CallsGroup = { name: IdempotencyKey | null; calls: readonly ParsedCall[]; detach: boolean };

export type CallsEnd = {
  groupId: string;
  /** In the order of the calls; null for one that failed. */
  texts: (string | null)[];
  /** Why the first of those failed; null = none did. */
  reason: Reason | null;
  finishReason: string | null;
  /** What the last call's answer has beside its text; undefined = nothing. */
  parts: AnswerParts | undefined;
  attempts: number;
  spent: Spent;
};

/** Opens the group of the calls, or finds it, and waits for its end. Throws a Refusal if it may not be opened. */
export async function groupOfCalls(
  c: Context<AppEnv>,
  runId: string,
  { name, calls, detach }: CallsGroup,
): Promise<CallsEnd> {
  const run = new RunCaller(c.env, runId);
  const own = { idempotencyKey: name, count: calls.length, detach, isConfirmed: true } as const;
  const hasCustomIds = calls.some(({ facts }) => isLabelled(facts));
  const rules = { ...PLAIN_RULES, ...own, hasCustomIds };
  const capacity = firstCapacity(c.get("config").waitingFetchesMax);
  const opening = { calls: calls.map((call) => ({ ...call, id: null })), defaults: {}, dedupe: false, rules };
  const opened = await openGroup(opening, openGroupDeps(c, run, capacity));
  const reader = groupOfClient(c, run, opened, { ids: [], detach, showsSlots: false });
  const end = await endOf(reader);
  noteGroup(c, runId, { ...opened, remainingNanoUsd: end.remainingNanoUsd });
  return end;
}

async function endOf(reader: GroupSource): Promise<CallsEnd & { remainingNanoUsd: number | null }> {
  const { id: groupId, count, usage: spent, remainingNanoUsd } = await reader.ended();
  const texts: (string | null)[] = [];
  let reason: Reason | null = null;
  let finishReason: string | null = null;
  let parts: AnswerParts | undefined;
  let attempts = 0;
  for await (const slots of slotPages({ count, slotsFrom: (index) => reader.slotsFrom(index) })) {
    for (const slot of slots) {
      const hasFailed = slotError(slot) !== null;
      if (hasFailed) reason ??= reasonOf(slot);
      texts.push(hasFailed ? null : (slot.text ?? ""));
      finishReason = slot.finishReason;
      parts = partsOfSlot(slot);
      attempts += slot.attempts;
    }
  }
  return { groupId, texts, reason, finishReason, parts, attempts, spent, remainingNanoUsd };
}
