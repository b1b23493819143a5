/** `POST /rollout/:id/v1/rlm/tools`: what the code of verifiers' RLMEnv calls, `llm_batch` and tools of the run. */
import * as z from "zod";
import { ITEMS_PER_BATCH_MAX } from "../../limits.ts";
import { parseBatch, promptCall, type BatchRequest } from "../batch.ts";
import { errorBody, invalid, type Parsed } from "../errors.ts";
import { usageDocument } from "../query.ts";
import { atFirstUse } from "../../at-first-use.ts";

/** The request as documented. */
export const dialectToolCall = atFirstUse(() =>
  z
    .looseObject({
      tool_name: z.string().meta({
        pattern: "^[A-Za-z0-9_-]{1,64}$",
        description: "`llm_batch`, or the name of a tool of the run",
      }),
      args: z.array(z.unknown()).optional(),
      kwargs: z.record(z.string(), z.unknown()).optional(),
    })
    .meta({ id: "DialectToolCall" }),
);

/** The answer: of `llm_batch` a list of texts, with what its failures were and what it cost. */
export const dialectToolReply = atFirstUse(() =>
  z
    .object({
      result: z.unknown(),
      errors: z.array(z.union([errorBody().shape.error, z.null()])).optional(),
      usage: usageDocument().optional(),
    })
    .meta({ id: "DialectToolReply" }),
);

/** A tool as it is called: Python's positional arguments, and those by name. */
export type DialectToolCall = { name: string; args: readonly unknown[]; kwargs: Record<string, unknown> };

/** A parsed JSON body as the call of a tool. */
export function parseDialectToolCall(value: unknown): Parsed<DialectToolCall> {
  const read = z.record(z.string(), z.unknown()).safeParse(value);
  if (!read.success) return invalid(null, "expected a JSON object");
  const { tool_name: name, args = [], kwargs = {} } = read.data;
  if (name == null || name === "") return refused("tool_name", "Tool name not provided");
  if (typeof name !== "string") return invalid("tool_name", "expected a text");
  if (!Array.isArray(args)) return refused("args", "args must be a JSON array");
  const named = z.record(z.string(), z.unknown()).safeParse(kwargs);
  if (!named.success) return refused("kwargs", "kwargs must be a JSON object");
  return { ok: true, value: { name, args, kwargs: named.data } };
}

/** What a tool of the run gets: its arguments by name, and those without one as `args`. */
export function toolInput({ args, kwargs }: DialectToolCall): Record<string, unknown> {
  return args.length === 0 ? kwargs : { ...kwargs, args };
}

/** `llm_batch`: the prompts that are texts as a batch, and the index of each in the list; the other prompts are not sent. */
export type LlmBatch = { request: BatchRequest; count: number; indexes: readonly number[] };

/** The arguments of `llm_batch` as a batch. A prompt that is not a text fails at its own index, as in verifiers. */
export function parseLlmBatch({ args, kwargs }: DialectToolCall): Parsed<LlmBatch> {
  const { prompts: byName, ...rest } = kwargs;
  const [extra] = Object.keys(rest).toSorted();
  if (extra !== undefined) return refused(extra, `llm_batch does not accept extra keyword arguments: ${extra}`);
  if (args.length > 0 && byName !== undefined) return refused("prompts", "llm_batch received prompts twice.");
  if (args.length > 1) return refused("args", "llm_batch expects a single prompts argument.");
  const prompts: unknown = args.length === 1 ? args[0] : byName;
  if (prompts === undefined) return refused("prompts", "llm_batch requires a prompts argument.");
  if (!Array.isArray(prompts)) return refused("prompts", "prompts: llm_batch expects a list of prompts.");
  if (prompts.length > ITEMS_PER_BATCH_MAX) {
    return invalid("prompts", `has ${prompts.length} calls; expected at most ${ITEMS_PER_BATCH_MAX}`);
  }
  const indexes = [...prompts.keys()].filter((index) => typeof prompts[index] === "string");
  const texts = { prompts: indexes.map((index): unknown => prompts[index]) };
  const batch = parseBatch(texts, (prompt, index, settings, plain) =>
    promptCall(prompt, indexes[index] ?? index, settings, plain),
  );
  if (!batch.ok) return batch;
  return { ok: true, value: { request: { ...batch.value, errorStyle: "verifiers" }, count: prompts.length, indexes } };
}

function refused(param: string, message: string): Parsed<never> {
  return { ok: false, reason: { reason: "invalid_request", message, param } };
}
