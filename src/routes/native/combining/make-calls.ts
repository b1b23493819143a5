/**
 * Calls that combine the answers of a group, as groups of their own. A group has a name that follows from the group whose answers
 * it combines, which no client can use as a key: so it is opened once, by the first who reads the answer, and found by all others.
 */
import type { Context } from "hono";
import type { CombiningCall, CombiningSettings, MakeCalls, StepEnd } from "../../../aggregate/calls/calls.ts";
import type { AppEnv } from "../../../context.ts";
import { parseSettings, SETTINGS_DEFAULT } from "../../../contract/call-options.ts";
import { parseCall, type ParsedCall } from "../../../contract/call.ts";
import type { Parsed } from "../../../contract/errors.ts";
import { Refusal, toWire, type Reason } from "../../../errors.ts";
import { firstCapacity } from "../../../execute/group-executor.ts";
import { slotError } from "../../../respond/slot.ts";
import { slotPages } from "../../../respond/slot-pages.ts";
import type { GroupView } from "../../../run-api/groups.ts";
import { RunCaller } from "../../../run-client/caller.ts";
import type { GroupSource } from "../../../run-client/group-reader.ts";
import { openGroup } from "../../../run-client/open-group.ts";
import { groupOfClient, openGroupDeps } from "../client-group.ts";

/** Makes the calls that combine the answers of a group of a run. */
export function combiningCalls(
  c: Context<AppEnv>,
  runId: string,
  { id: groupId, status }: Pick<GroupView, "id" | "status">,
): MakeCalls {
  return async (step, calls, settings) => {
    if (status === "cancelled") return failedStep(calls.length, CANCELLED);
    const parsed = calls.map((call) => parsedCall(call, settings));
    const refused = parsed.find((call) => !call.ok);
    if (refused !== undefined && !refused.ok) return failedStep(calls.length, refused.reason);
    // No header can have a line break, so no client's key is like it.
    const name = { key: `\naggregate ${groupId} ${step}`, hash: "aggregate" };
    const made = parsed.flatMap((call) => (call.ok ? [call.value] : []));
    try {
      return await groupOfCalls(c, runId, { name, calls: made });
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      return failedStep(calls.length, error.reason);
    }
  };
}

const CANCELLED: Reason = { reason: "cancelled", message: "the batch was cancelled before its answers were combined" };

function parsedCall({ prompt, schema }: CombiningCall, { model, maxTokens }: CombiningSettings): Parsed<ParsedCall> {
  const sent = {
    ...(model !== null && { model }),
    ...(maxTokens !== null && { max_tokens: maxTokens }),
    ...(schema !== undefined && { schema }),
  };
  const path = (field: string): string => `aggregate.${field}`;
  const settings = parseSettings(sent, SETTINGS_DEFAULT, path);
  return settings.ok ? parseCall({ prompt }, settings.value, path) : settings;
}

type NamedCalls = { name: { key: string; hash: string }; calls: readonly ParsedCall[] };

/** Opens the group of the calls, or finds it, and waits for its end. */
async function groupOfCalls(c: Context<AppEnv>, runId: string, { name, calls }: NamedCalls): Promise<StepEnd> {
  const run = new RunCaller(c.env, runId);
  const rules = {
    idempotencyKey: name,
    count: calls.length,
    single: false,
    background: false,
    hasCustomIds: false,
    concurrency: null,
    onError: "continue",
    onBudget: "partial",
    onLost: "retry",
    split: false,
    deadlineMs: null,
    detach: true,
    errorStyle: null,
  } as const;
  const capacity = firstCapacity(c.get("config").waitingFetchesMax);
  const opening = { calls: calls.map((call) => ({ ...call, id: null })), defaults: {}, dedupe: false, rules };
  const opened = await openGroup(opening, openGroupDeps(c, run, capacity));
  const reader = groupOfClient(c, run, opened, { ids: [], detach: true, showsSlots: false });
  return await endOf(reader);
}

async function endOf(reader: GroupSource): Promise<StepEnd> {
  const { id, count, usage } = await reader.ended();
  const texts: (string | null)[] = [];
  let error: StepEnd["error"] = null;
  for await (const slots of slotPages({ count, slotsFrom: (index) => reader.slotsFrom(index) })) {
    for (const slot of slots) {
      const failure = slotError(slot);
      if (failure !== null) error ??= { code: failure.code, message: failure.message };
      texts.push(failure === null ? (slot.text ?? "") : null);
    }
  }
  return { groupId: id, texts, error, spent: usage };
}

function failedStep(count: number, reason: Reason): StepEnd {
  const { code, message } = toWire(reason).error;
  const texts = Array.from({ length: count }, () => null);
  return {
    groupId: null,
    texts,
    error: { code, message },
    spent: { promptTokens: 0, completionTokens: 0, costNanoUsd: 0 },
  };
}
