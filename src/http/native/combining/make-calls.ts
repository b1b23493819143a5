/**
 * Calls that combine the answers of a group, as groups of their own. A group has a name that follows from the group whose answers
 * it combines, which no client can use as a key: so it is opened once, by the first who reads the answer, and found by all others.
 */
import type { Context } from "hono";
import type { CombiningCall, CombiningSettings, MakeCalls, StepEnd } from "../../../run/answers/calls.ts";
import type { AppEnv } from "../../context.ts";
import { parseSettings, SETTINGS_DEFAULT } from "../../../contract/call-options.ts";
import { parseCall, type ParsedCall } from "../../../contract/call.ts";
import type { Parsed } from "../../../contract/errors.ts";
import { Refusal, toWire, type Reason } from "../../../errors.ts";
import type { GroupView } from "../../../objects/methods/groups.ts";
import { groupOfCalls } from "./calls-group.ts";

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
      const { groupId, texts, reason, spent } = await groupOfCalls(c, runId, { name, calls: made, detach: true });
      return { groupId, texts, error: reason === null ? null : errorOf(reason), spent };
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

function failedStep(count: number, reason: Reason): StepEnd {
  const texts = Array.from({ length: count }, () => null);
  return {
    groupId: null,
    texts,
    error: errorOf(reason),
    spent: { promptTokens: 0, completionTokens: 0, costNanoUsd: 0 },
  };
}

function errorOf(reason: Reason): NonNullable<StepEnd["error"]> {
  const { code, message } = toWire(reason).error;
  return { code, message };
}
