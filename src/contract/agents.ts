/** `prompt` with `agents` or `n`: a batch of the same request, to several models or several times. */
import * as z from "zod";
import { TIER_NAMES } from "../run/answers/tiers.ts";
import { AGENTS_MAX, GROUP_CHARS_MAX, ITEMS_PER_BATCH_MAX } from "../limits.ts";
import { callSettingsFields, type CallSettingsInput } from "./call-options.ts";
import { readContent, type CallContent } from "./call.ts";
import { invalid, type Parsed } from "./errors.ts";
import { label, type ContentInput } from "./fields.ts";
import { strictFields } from "./strict-fields.ts";
import { atFirstUse } from "../at-first-use.ts";

const agent = atFirstUse(() =>
  strictFields({ id: label.optional(), tier: z.enum(TIER_NAMES).optional(), ...callSettingsFields() }),
);

/** The fields beside `prompt` or `messages` at the top of a batch. */
export const agentsFields = atFirstUse(() => ({
  agents: z
    .array(z.union([label, agent()]))
    .min(1)
    .max(AGENTS_MAX)
    .optional()
    .meta({
      description:
        "With `prompt` or `messages`: makes the same request once for each of these, a model or an object with an `id` and settings of its own",
    }),
  n: z
    .int()
    .min(1)
    .max(ITEMS_PER_BATCH_MAX)
    .optional()
    .meta({ description: "With `prompt` or `messages`: makes the same request so often" }),
}));

type Sent = ContentInput & z.infer<z.ZodObject<ReturnType<typeof agentsFields>>>;

/** A request with one content that several calls have: each with settings of its own, or so many with no settings at all. */
export type Copied = {
  content: CallContent;
  each:
    | readonly (CallSettingsInput & { id?: string | undefined; tier?: (typeof TIER_NAMES)[number] | undefined })[]
    | number;
};

/** What a request with one content expands to; null = it has none. */
export function copiesOfOne({ prompt, messages, agents, n }: Sent): Parsed<Copied> | null {
  if (prompt === undefined && messages === undefined) {
    const stray = agents === undefined ? (n === undefined ? null : "n") : "agents";
    return stray === null ? null : invalid(stray, "needs prompt, the text that is sent to each");
  }
  const field = prompt === undefined ? "messages" : "prompt";
  if ((agents === undefined) === (n === undefined)) {
    return invalid(field, "needs either agents (a list of models) or n (a number); for several texts, send prompts");
  }
  const sent: ContentInput = {
    ...(prompt !== undefined && { prompt }),
    ...(messages !== undefined && { messages }),
  };
  const content = readContent(sent, (name) => name);
  if (!content.ok) return content;
  const named = agents?.map((each) => (typeof each === "string" ? { id: each, model: each } : each));
  const each = named ?? n ?? 1;
  const times = named?.length ?? n ?? 1;
  // It is read and stored once, and sent so often.
  if (content.value.fields.jsonBytes * times > GROUP_CHARS_MAX) {
    const what = `the request, ${times} times`;
    return { ok: false, reason: { reason: "payload_too_large", what, bytesMax: GROUP_CHARS_MAX, param: "prompt" } };
  }
  return { ok: true, value: { content: content.value, each } };
}
