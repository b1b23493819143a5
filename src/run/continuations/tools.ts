/**
 * Tools that a model uses before it answers. An answer that asks for tools of the run is followed by an attempt that makes these calls (a
 * round), and that by one at the model, whose request has the answer and the results. All of them are attempts of the same slot: those at
 * the model with a reservation for what is really sent, rounds with none.
 */
import type { AskedCall, ToolRound, ToolUse } from "../../call.ts";
import {
  TOOL_CALLS_PER_TURN_MAX,
  TOOL_RESULT_BYTES_MAX,
  TOOL_ROUNDS_LOST_MAX,
  TOOL_TALK_BYTES_MAX,
} from "../../limits.ts";
import { jsonNormalisedGrowth } from "../../text/tokens/normalised-bytes.ts";
import { askedCalls } from "../answers/asked-calls.ts";
import { isBudgetReason } from "../money/admit.ts";
import type { Course, SlotRecord, Talk, UsedTools } from "../group/record.ts";
import type { SlotFacts } from "../queue/slot.ts";
import type { Continuation, FinalEnd, Onward } from "./continuation.ts";

/** Why a call ends although its model asks for tools: it has had its turns, asks for too many, its messages are too long, its budget is used up. */
const MAX_TURNS = "max_turns";
const TOO_MANY = "too_many_calls";
const CONTEXT_FULL = "context_full";
const BUDGET = "tool_budget";
/** It asks for tools that its client has to call. */
const CLIENT_TOOLS = "tool_calls";

/** What a model is told of a call that may have been made, of a tool that must not be called twice, or whose executor was lost twice. */
export const UNKNOWN_RESULT =
  "Error: the call was interrupted. Whether the tool was called, and what it answered, is not known; it is not called again.";

const NOTHING: UsedTools = { turns: 0, calls: {} };

export const tools: Continuation = {
  appliesTo: ({ toolUse }) => toolUse !== undefined,

  /** An answer that asks for tools is not the one that must fit the schema. Results that come after a group was stopped are nobody's. */
  ofCall(outcome, { facts, drained }) {
    if (outcome.kind !== "success") return null;
    if (facts.round === undefined) return asks(outcome.parts?.message) ? outcome : null;
    if (drained === null) return null;
    const { latencyMs } = outcome;
    const { reason } = drained;
    return { kind: "failure", class: "rejected", reason, answered: true, retryAfterMs: null, latencyMs };
  },

  next(ended) {
    const { facts, course } = ended;
    const { toolUse: used = NOTHING } = course;
    if (facts.toolUse === undefined) return null;
    if (used.talk?.pending !== undefined) return afterRound(ended, used, used.talk, used.talk.pending);
    return afterAnswer(ended, used, facts.toolUse);
  },

  facts(facts, { course }) {
    const talk = course?.toolUse?.talk;
    if (talk === undefined) return facts;
    return talk.pending === undefined ? withMessages(facts, talk) : roundFacts(facts, talk.pending);
  },

  /** With the message that asks for tools, if the budget pays for no further turn. */
  left(record, hindrance, facts) {
    const { toolUse: { talk, ...used } = NOTHING } = record.course ?? {};
    const isBudget = hindrance.kind === "refused" && isBudgetReason(hindrance.reason);
    if (record.course === undefined || talk === undefined || !isBudget) return null;
    const { text, model, at } = talk.last;
    const message = talk.messages[at] ?? "";
    const transcript = facts.toolUse?.transcript === true ? { transcript: listOf(talk.messages) } : {};
    const parts = { message, ...transcript };
    const course = { ...record.course, toolUse: used };
    return { ...record, state: "completed", reason: null, text, model, parts, finishReason: BUDGET, course };
  },

  end(record) {
    const { toolUse } = record.course;
    if (toolUse?.talk === undefined) return record;
    const { talk: _, ...used } = toolUse;
    return { ...record, course: { ...record.course, toolUse: used } };
  },
};

/** What the executor of a slot's attempt needs of its conversation: the calls to make, or what follows the messages of the call. */
export function talkOf(record: Pick<SlotRecord, "course"> | undefined): {
  round?: ToolRound;
  added?: readonly string[];
} {
  const talk = record?.course?.toolUse?.talk;
  if (talk === undefined) return {};
  const { pending: calls, messages, bytes, lost = 0 } = talk;
  if (calls === undefined) return { added: messages };
  const room = Math.max(0, TOOL_TALK_BYTES_MAX - bytes) / Math.max(1, calls.length);
  const resultBytesMax = Math.floor(Math.min(TOOL_RESULT_BYTES_MAX, room));
  return { round: { calls, isRepeated: lost > 0, resultBytesMax } };
}

/** The course of a call as its readers see it: without a conversation that goes on. */
export function shownCourse(whole: Course): Course {
  const { kept: _, toolUse, ...course } = whole;
  if (toolUse === undefined) return course;
  const { turns, calls } = toolUse;
  return { ...course, toolUse: { turns, calls } };
}

function asks(message: string | undefined): boolean {
  const calls = askedCalls(message);
  return calls === undefined || calls.length > 0;
}

function afterAnswer({ outcome, course }: FinalEnd, { talk, ...used }: UsedTools, use: ToolUse): Onward | null {
  if (outcome.kind === "failure") {
    return talk === undefined ? null : { course: { ...course, toolUse: used }, continues: false };
  }
  const { text, parts, model, finishReason } = outcome;
  const counted = { ...used, turns: used.turns + 1 };
  const message = parts?.message ?? JSON.stringify({ role: "assistant", content: text });
  const messages = [...(talk?.messages ?? []), message];
  const ends = (reason?: string): Onward => ({
    course: { ...course, toolUse: counted },
    continues: false,
    answer: {
      ...(reason !== undefined && { finishReason: reason }),
      ...(use.transcript === true && { transcript: listOf(messages) }),
    },
  });
  const calls = askedCalls(parts?.message);
  if (calls === undefined) return ends(CLIENT_TOOLS);
  if (calls.length === 0) return ends();
  if (!calls.every(({ name }) => use.tools.includes(name))) return ends(CLIENT_TOOLS);
  const turns = (talk?.turns ?? 0) + 1;
  if (turns >= use.maxTurns) return ends(MAX_TURNS);
  if (calls.length > TOOL_CALLS_PER_TURN_MAX) return ends(TOO_MANY);
  const bytes = (talk?.bytes ?? 0) + bytesOf(message);
  if (bytes > TOOL_TALK_BYTES_MAX) return ends(CONTEXT_FULL);
  const last = { text, model, finishReason, at: messages.length - 1 };
  return going(course, { ...counted, talk: { turns, base: 0, messages, bytes, pending: calls, last } });
}

/** The results of a round are messages of the next request. Of one whose executor was lost, what may be is called once more. */
function afterRound({ outcome, course }: FinalEnd, used: UsedTools, talk: Talk, calls: readonly AskedCall[]): Onward {
  const results = outcome.kind === "success" ? resultsIn(outcome.text, calls.length) : null;
  const lost = (talk.lost ?? 0) + 1;
  if (results === null && lost <= TOOL_ROUNDS_LOST_MAX) return going(course, { ...used, talk: { ...talk, lost } });
  const added = calls.map(({ id }, index) =>
    JSON.stringify({ role: "tool", tool_call_id: id, content: results?.[index] ?? UNKNOWN_RESULT }),
  );
  const { turns, base, last } = talk;
  const bytes = added.reduce((sum, message) => sum + bytesOf(message), talk.bytes);
  const answered = { turns, base, last, bytes, messages: [...talk.messages, ...added] };
  return going(course, { turns: used.turns, calls: withCalls(used.calls, calls), talk: answered });
}

function going(course: Course, toolUse: UsedTools): Onward {
  return { course: { ...course, toolUse }, continues: true };
}

/** The results that an executor reports; null if it reports something else. */
function resultsIn(text: string, count: number): string[] | null {
  let results: unknown;
  try {
    results = JSON.parse(text);
  } catch {
    return null;
  }
  if (!Array.isArray(results) || results.length !== count) return null;
  return results.every((each) => typeof each === "string") ? results : null;
}

function withCalls(counts: UsedTools["calls"], calls: readonly AskedCall[]): UsedTools["calls"] {
  const next = new Map(Object.entries(counts));
  for (const { name } of calls) next.set(name, (next.get(name) ?? 0) + 1);
  return Object.fromEntries(next);
}

function withMessages(facts: SlotFacts, { messages, bytes }: Talk): SlotFacts {
  const { textTokensMax } = facts;
  const longer = {
    ...facts,
    promptBytes: facts.promptBytes + bytes,
    messageCount: facts.messageCount + messages.length,
  };
  return textTokensMax === undefined ? longer : { ...longer, textTokensMax: textTokensMax + bytes };
}

/** A round sends no prompt, and is never hedged: nobody knows what a second call of a tool does. */
function roundFacts({ model, modelIndex, priority, toolUse, tier }: SlotFacts, calls: readonly AskedCall[]): SlotFacts {
  const nothing = { promptBytes: 0, messageCount: 0, mediaParts: 0, maxTokens: null, timeoutMs: null };
  return {
    ...nothing,
    model,
    modelIndex,
    priority,
    hedge: false,
    wantedTier: "default",
    round: calls.map(({ name }) => name),
    ...(toolUse !== undefined && { toolUse }),
    ...(tier !== undefined && { tier }),
  };
}

const encoder = new TextEncoder();

/** Bytes of a message in a request, as tokenizers read them. */
function bytesOf(message: string): number {
  const json = encoder.encode(message);
  return json.length + jsonNormalisedGrowth(json);
}

function listOf(messages: readonly string[]): string {
  return `[${messages.join(",")}]`;
}
