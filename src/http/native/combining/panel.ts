/**
 * The panel: a virtual model. Several models answer the same call side by side, and another one makes one answer of theirs. All
 * of it is calls of the run: reserved one by one, logged, and paid for by it.
 */
import type { Context } from "hono";
import type { AnswerParts } from "../../../call.ts";
import type { Member } from "../../../run/answers/member.ts";
import { ShownAnswers } from "../../../run/answers/answers.ts";
import type { Spent } from "../../../run/answers/calls.ts";
import type { AppEnv } from "../../context.ts";
import { parseSettings, SETTINGS_DEFAULT } from "../../../contract/call-options.ts";
import { parseCall, type ParsedCall } from "../../../contract/call.ts";
import { invalid, type Parsed } from "../../../contract/errors.ts";
import { hasCourse } from "../../../run/continuations/table.ts";
import { Refusal } from "../../../errors.ts";
import { COMBINING_CHARS_DEFAULT } from "../../../limits.ts";
import type { IdempotencyKey } from "../../../objects/methods/types.ts";
import { PANEL_MODEL, type Panel } from "../../../providers/panel.ts";
import { groupOfCalls } from "./calls-group.ts";

export type PanelAnswer = {
  text: string;
  finishReason: string | null;
  /** What the judge's answer has beside its text; undefined = nothing. */
  parts: AnswerParts | undefined;
  attempts: number;
  spent: Spent;
};

/** `named`: the client's Idempotency-Key; null = it sent none. */
type PanelCall = { call: ParsedCall; named: IdempotencyKey | null };

/** Asks the panel. Throws a Refusal if no member answers, or the judge does not. */
export async function askPanel(
  c: Context<AppEnv>,
  runId: string,
  panel: Panel,
  { call, named }: PanelCall,
): Promise<PanelAnswer> {
  if (hasCourse(call.facts)) {
    const problem = `cannot be combined with the model ${PANEL_MODEL}, which calls several models itself`;
    throw new Refusal(invalid("samples", problem).reason);
  }
  const detach = named !== null;
  // No header can have a line break, so no client's key is like these.
  const nameOf = (step: string): IdempotencyKey | null =>
    named === null ? null : { key: `\npanel ${step} ${named.key}`, hash: named.hash };
  const asked = panel.members.map((model) => memberCall(call, model));
  const members = await groupOfCalls(c, runId, { name: nameOf("members"), calls: asked, detach });
  const { texts } = members;
  if (members.reason !== null && texts.every((text) => text === null)) throw new Refusal(members.reason);
  const judging = judgeCall(call, panel, texts);
  if (!judging.ok) throw new Refusal(judging.reason);
  const judged = await groupOfCalls(c, runId, { name: nameOf("judge"), calls: [judging.value], detach });
  if (judged.reason !== null) throw new Refusal(judged.reason);
  const sum = (name: keyof Spent): number => members.spent[name] + judged.spent[name];
  return {
    text: judged.texts[0] ?? "",
    finishReason: judged.finishReason,
    parts: judged.parts,
    attempts: members.attempts + judged.attempts,
    spent: {
      promptTokens: sum("promptTokens"),
      completionTokens: sum("completionTokens"),
      costNanoUsd: sum("costNanoUsd"),
    },
  };
}

/** The call as a member gets it. Only the answer of the judge has to fit a schema. */
function memberCall({ body, facts }: ParsedCall, model: string): ParsedCall {
  const member = { body: { ...body }, facts: { ...facts, model } };
  delete member.body.schema;
  delete member.facts.schemaRetries;
  return member;
}

const TASK =
  "Several models have answered the conversation above. Give the one answer to it that is right and complete, in the form that it asks for. Do not mention the other answers.";

/** The call with the members' answers after its own messages. */
function judgeCall({ body, facts }: ParsedCall, panel: Panel, texts: readonly (string | null)[]): Parsed<ParsedCall> {
  const answers = new ShownAnswers(texts.length, COMBINING_CHARS_DEFAULT);
  for (const member of membersOf(texts)) answers.add(member);
  const {
    prompt,
    messages = [{ role: "user", content: prompt ?? "" }],
    system,
    temperature,
    params,
    schema,
    include,
  } = body;
  const sent = {
    model: panel.judge,
    priority: facts.priority,
    ...(facts.maxTokens !== null && { max_tokens: facts.maxTokens }),
    ...(facts.timeoutMs !== null && { timeout_ms: facts.timeoutMs }),
    ...(facts.schemaRetries !== undefined && { schema_retries: facts.schemaRetries }),
    ...(system !== undefined && { system }),
    ...(temperature !== undefined && { temperature }),
    ...(params !== undefined && { params }),
    ...(schema !== undefined && { schema }),
    ...(include !== undefined && { include: [...include] }),
  };
  const path = (field: string): string => field;
  const settings = parseSettings(sent, SETTINGS_DEFAULT, path);
  if (!settings.ok) return settings;
  const question = { role: "user", content: `${TASK}\n\n${answers.text}` };
  return parseCall({ messages: [...messages, question] }, settings.value, path);
}

function membersOf(texts: readonly (string | null)[]): Member[] {
  return texts.map((text, index) => ({ index, id: null, completed: text !== null, text: text ?? "" }));
}
