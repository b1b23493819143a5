/** Fields that several routes take. */
import * as z from "zod";
import { DEADLINE_MS_MAX, NAME_CHARS_MAX } from "../limits.ts";
import { BATCH_TIER, WANTED_TIERS, type CallRules } from "../call.ts";
import { atFirstUse } from "../at-first-use.ts";

/** For the OpenAPI document: the schema of a field that must be absent, because another one excludes it. */
export const ABSENT = { not: {} };

type TypeName = "string" | "array" | "null";
type FieldOfSet = typeof ABSENT | { pattern: string } | { type: TypeName | TypeName[] };

/** Fields that are required together, and what holds of fields beside them only. */
type FieldSet = { required: readonly string[]; properties?: Readonly<Record<string, FieldOfSet>> };

/**
 * For the OpenAPI document: a body has exactly one of these sets of fields, and none of the fields that only other sets require. The
 * parser of the body checks it, because it can name the path.
 * @param others The schema of these fields: absent, or null where a null counts as missing.
 */
export function exactlyOneOf(sets: readonly (readonly string[] | FieldSet)[], others: FieldOfSet = ABSENT) {
  const full = sets.map((set) => ("required" in set ? set : { required: set }));
  const names = [...new Set(full.flatMap(({ required }) => required))];
  return {
    oneOf: full.map(({ required, properties = {} }: FieldSet) => {
      const excluded = names.filter((name) => !required.includes(name)).map((name) => [name, others] as const);
      return { required: [...required], properties: { ...Object.fromEntries(excluded), ...properties } };
    }),
  };
}

/** The content of a call, for the OpenAPI document. */
export const ONE_CONTENT = exactlyOneOf([["prompt"], ["messages"]]);

/** A short text for rows, logs and headers: no control characters, no halves of characters. */
export const label = z
  .string()
  .min(1)
  .max(NAME_CHARS_MAX)
  .refine((text) => text.isWellFormed() && !/\p{Cc}/u.test(text), "expected text without control characters")
  .meta({ pattern: "^[^\\u0000-\\u001f\\u007f-\\u009f]*$" });

const ERROR_STYLES = ["bracket", "rlm", "dspy", "verifiers", "null", "settled", "throw"] as const;

/** Values that 50, 95 and 99 % of the durations are at most, ms; at most 5 % too high. Null: nothing was measured. */
export const percentiles = atFirstUse(() => z.object({ p50: z.number(), p95: z.number(), p99: z.number() }).nullable());

/** Why an answer whose finish reason is `length` ended where it did, if the gateway lowered its cap. */
export const cappedBy = atFirstUse(() =>
  z.enum(["budget"]).optional().meta({
    description:
      "`budget` if the gateway lowered the completion cap to fit the remaining budget and the answer ended at that cap",
  }),
);

/** The answer as JSON, of a call with a schema. */
export const answerJson = atFirstUse(() =>
  z.unknown().optional().meta({
    description: "The answer as JSON, if the call has a `schema`: it fits it. Absent otherwise",
  }),
);

/** What an answer has beside its text. */
export const answerParts = atFirstUse(() => ({
  message: z.looseObject({ role: z.string(), content: z.unknown() }).optional().meta({
    description:
      "The model's message in the chat form, if it has more than text (tool calls, thoughts, a refusal, citations, sounds), or if `include` asks for it. Sent back as one of `messages` it works at the same upstream",
  }),
  logprobs: z.record(z.string(), z.unknown()).optional().meta({
    description: "With `include`: the log probabilities of the tokens, as the upstream sent them",
  }),
  transcript: z
    .array(z.looseObject({ role: z.string() }))
    .optional()
    .meta({
      description:
        "With `include`, of a call with `tools`: the messages that followed those of the call, and the answer, in the chat form",
    }),
}));

/** Who answered a call that asked for a route. */
export const answeredBy = atFirstUse(() =>
  z.string().optional().meta({
    description: "The upstream that answered, if the requested model is a route; `model` is the model that answered",
  }),
);

/** A whole number in a query string. An empty text is refused, though JavaScript reads it as 0. */
export const queryInt = z
  .string()
  .regex(/^-?\d{1,15}$/, "expected a whole number")
  .transform(Number);

/** A number in a query string, as clients of any language write it. An empty text is refused, though JavaScript reads it as 0. */
export const queryNumber = z
  .string()
  .regex(/^-?\d{1,15}(?:\.\d{1,20})?(?:e[+-]?\d{1,3})?$/i, "expected a number")
  .transform(Number);

/** How a failed slot is rendered in `results`. */
export type ErrorStyle = (typeof ERROR_STYLES)[number];

/** The style as sent: JSON's own null means the same as `"null"`. */
export const errorStyle = atFirstUse(() => z.enum(ERROR_STYLES).nullable());

/** The style that a wire value names; null if it is missing. */
export function errorStyleOf(value: ErrorStyle | null | undefined): ErrorStyle | null {
  if (value === undefined) return null;
  return value ?? "null";
}

const SEVERAL_TEXTS = "expected a text; several are `prompts` of POST /batch, and a conversation is `messages`";

/** The content of a call: exactly one of the two. `parseCall` checks that, because it can name the path. */
export const contentFields = atFirstUse(() => ({
  prompt: z
    .string({ error: ({ input }) => (Array.isArray(input) ? SEVERAL_TEXTS : undefined) })
    .optional()
    .meta({ description: "Text of one user message. Exactly one of `prompt` and `messages` is required" }),
  messages: z
    .custom<readonly unknown[]>((value) => Array.isArray(value), "expected an array of messages")
    .optional()
    .meta({
      type: "array",
      minItems: 1,
      items: {
        type: "object",
        required: ["role"],
        properties: {
          role: { type: "string", minLength: 1 },
          content: {
            type: ["string", "array", "null"],
            items: { anyOf: [{ type: "string" }, { type: "object", additionalProperties: true }] },
          },
        },
        additionalProperties: true,
      },
      description: "Chat messages, forwarded unchanged. Exactly one of `prompt` and `messages` is required",
    }),
}));

/** The content as a client sends it. */
export type ContentInput = z.infer<z.ZodObject<ReturnType<typeof contentFields>>>;

/** The rules of a call, or of all calls of a batch: how long it may wait, what follows a lost attempt, whether it is shared. */
export const callRulesFields = atFirstUse(() => ({
  deadline_ms: z
    .int()
    .min(1)
    .max(DEADLINE_MS_MAX)
    .optional()
    .meta({ description: "A call that has not started after this time, ms, fails with `deadline_exceeded`" }),
  on_lost: z.enum(["retry", "fail"]).optional().meta({
    description:
      "After an attempt whose outcome is unknown: `retry` (default) makes another attempt under a new reservation, `fail` fails the call",
  }),
  dedupe: z.boolean().optional().meta({
    description:
      "If true, identical calls of this run that are in flight at the same time share one answer and its cost; default false",
  }),
}));

/** The rules as a client sends them. */
export type CallRulesInput = z.infer<z.ZodObject<ReturnType<typeof callRulesFields>>>;

/** Rules with whether equal calls in flight share one answer, which becomes a key of each call. */
export type SentRules = CallRules & { dedupe: boolean };

/** The rules that a request names, and the defaults of the others. */
export function rulesOf(input: CallRulesInput): SentRules {
  return { deadlineMs: input.deadline_ms ?? null, onLost: input.on_lost ?? "retry", dedupe: input.dedupe ?? false };
}

/** What queued calls of groups do when the budget of their run is used up. */
export const onExhausted = atFirstUse(() =>
  z.enum(["fail", "pause"]).meta({
    description:
      "What happens to calls of groups that the rest of the budget does not cover. `fail` (default): they fail with `budget_exhausted`, and the last answers may be capped. " +
      "`pause`: they wait until the limits are raised, up to their deadline or the end of the run. Default of a group: its run's",
  }),
);
export type OnExhausted = z.infer<ReturnType<typeof onExhausted>>;

/** The tier of whole batches, on a single call, an item or a run. */
const BATCHES_ONLY =
  '"batch" is a tier of whole batches: send it at the top level of POST /batch, with deadline_ms and the header "Prefer: respond-async", ' +
  'or in POST /v1/batches; an item leaves it with "default"';

/** The service tier that calls are sent in where it is sold. */
export const wantedTier = atFirstUse(() =>
  z.enum(WANTED_TIERS, { error: ({ input }) => (input === BATCH_TIER ? BATCHES_ONLY : undefined) }).meta({
    description:
      "Service tier of the upstream. `flex` is cheaper and slower; if it is not sold, or has no capacity, the call is sent at the standard tier. The charge is for the tier that the answer names. Default: the run's; `default`: none",
  }),
);

/** The service tier of a batch: it may go through batches of its provider, too. */
export const batchTier = atFirstUse(() =>
  z.enum([...WANTED_TIERS, BATCH_TIER]).meta({
    description:
      "As on a call, and `batch`: calls go through the provider's own Batch API where it is sold, at a lower price. It needs " +
      "`Prefer: respond-async` and a `deadline_ms` of at least an hour. In time for the deadline, calls that the provider has not answered are cancelled there and sent live at the standard tier",
  }),
);

/** Regions of the world in which a run's object may begin: the location hints of Cloudflare. */
export const REGIONS = [
  "wnam",
  "enam",
  "sam",
  "weur",
  "eeur",
  "apac",
  "apac-ne",
  "apac-se",
  "oc",
  "afr",
  "me",
] as const;
export type Region = (typeof REGIONS)[number];

/** What kept a group narrower than its width, and what to do about it. */
export const narrowedBy = atFirstUse(() =>
  z.object({
    by: z.literal("budget"),
    dimension: z.enum(["usd", "calls", "prompt_tokens", "completion_tokens", "new_tokens"]),
    width: z.int().meta({ description: "Calls in flight, on average while others waited for the budget" }),
    of: z.int().meta({ description: "Calls that the group may have in flight" }),
    share: z.number().meta({ description: "For which share of the group's time others waited" }),
    per_call: z.number().meta({ description: "What each call reserves, in the dimension" }),
    remedy: z.string(),
  }),
);
