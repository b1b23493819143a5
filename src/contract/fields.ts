/** Fields that several doors take. */
import { z } from "@hono/zod-openapi";
import { DEADLINE_MS_MAX, MAX_TOKENS_MAX, NAME_CHARS_MAX, PARAMS_ENTRIES_MAX, TIMEOUT_MS_MAX } from "../limits.ts";
import type { Priority } from "../call.ts";

/** A short text for rows, logs and headers: no control characters, no halves of characters. */
export const label = z
  .string()
  .min(1)
  .max(NAME_CHARS_MAX)
  .refine((text) => text.isWellFormed() && !/\p{Cc}/u.test(text), "expected text without control characters");

const ERROR_STYLES = ["bracket", "rlm", "dspy", "verifiers", "null", "settled", "throw"] as const;

/** A whole number as a query writes it; an empty text is none, though JavaScript reads it as 0. */
export const queryInt = z
  .string()
  .regex(/^-?\d{1,15}$/, "expected a whole number")
  .transform(Number);

/** How a failed slot is rendered in `results`. */
export type ErrorStyle = (typeof ERROR_STYLES)[number];

/** The style as sent: JSON's own null says the same as `"null"`. */
export const errorStyle = z.enum(ERROR_STYLES).nullable();

/** The style that a wire value names; null where it names none. */
export function errorStyleOf(value: ErrorStyle | null | undefined): ErrorStyle | null {
  if (value === undefined) return null;
  return value ?? "null";
}

const PRIORITIES = {
  critical: 4,
  high: 3,
  normal: 2,
  medium: 2,
  low: 1,
  background: 0,
  P0: 4,
  P1: 3,
  P2: 2,
} as const satisfies Record<string, Priority>;

const PRIORITY_NAMES = ["critical", "high", "normal", "medium", "low", "background", "P0", "P1", "P2"] as const;

const priority = z.union(
  [z.enum(PRIORITY_NAMES), z.literal([4, 3, 2, 1, 0]).openapi({ type: "integer", enum: [4, 3, 2, 1, 0] })],
  {
    error: `expected one of ${PRIORITY_NAMES.join(", ")}, or 4 (critical) to 0 (background)`,
  },
);

/** The urgency that a wire value names. */
export function priorityOf(value: z.infer<typeof priority>): Priority {
  return typeof value === "number" ? value : PRIORITIES[value];
}

/** The settings of a call: on `/query`, on an item of a `/batch`, and at its top level as the default of all items. */
export const callSettingsFields = {
  model: label.optional().openapi({ description: "`upstream/model` or a model name; the run's default if left out" }),
  system: z.string().optional().openapi({ description: "Text of a system message put before the others" }),
  max_tokens: z.int().min(1).max(MAX_TOKENS_MAX).optional().openapi({ description: "Completion cap, in tokens" }),
  temperature: z.number().min(0).optional(),
  priority: priority.optional().openapi({ description: "A waiting call gains one level per 30 s; default normal" }),
  timeout_ms: z.int().min(1).max(TIMEOUT_MS_MAX).optional().openapi({ description: "Limit of one attempt" }),
  params: z
    .record(z.string(), z.unknown())
    .optional()
    .openapi({
      description: `Further fields for the upstream, passed on unchanged; at most ${PARAMS_ENTRIES_MAX}`,
    }),
};

/** What is asked: exactly one of the two. Checked by hand in `parseCall`, where the place can be named. */
export const contentFields = {
  prompt: z.string().optional().openapi({ description: "Text of one user message; this or `messages`" }),
  messages: z
    .custom<readonly unknown[]>((value) => Array.isArray(value), "expected an array of messages")
    .optional()
    .openapi({
      type: "array",
      minItems: 1,
      items: {
        type: "object",
        required: ["role"],
        properties: { role: { type: "string" }, content: { type: ["string", "array", "null"] } },
        additionalProperties: true,
      },
      description: "Chat messages, passed on unchanged; this or `prompt`",
    }),
};

/** The settings as a client sends them. */
export type CallSettingsInput = z.infer<z.ZodObject<typeof callSettingsFields>>;
/** The content as a client sends it. */
export type ContentInput = z.infer<z.ZodObject<typeof contentFields>>;

/** What a call says of being lost and of being shared, for one call or for all of a batch. */
export const outcomeFields = {
  on_lost: z.enum(["retry", "fail"]).optional().openapi({
    description: "What follows an attempt whose outcome is unknown: another, under a new reservation, or the failure",
  }),
  dedupe: z.boolean().optional().openapi({
    description: "Whether calls of this run that are equal and in flight together share one answer; default false",
  }),
};

/** How long a call may be queued before it fails, ms. The time of an attempt is `timeout_ms`, which starts at its dispatch. */
export const deadlineField = {
  deadline_ms: z
    .int()
    .min(1)
    .max(DEADLINE_MS_MAX)
    .optional()
    .openapi({ description: "A call that has not started within this time fails with `deadline_exceeded`" }),
};
