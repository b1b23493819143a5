/** A call's body from its two texts: what its slot says, over what its group's slots share. */
import { z } from "zod";
import type { CallBody } from "../../src/call.ts";

const stored = z.looseObject({
  prompt: z.string().optional(),
  messages: z.array(z.unknown()).optional(),
  system: z.string().optional(),
  temperature: z.number().optional(),
  params: z.record(z.string(), z.unknown()).optional(),
  raw: z
    .object({ endpoint: z.enum(["chat", "completions", "embeddings", "responses", "messages"]), json: z.string() })
    .optional(),
});

/** Both texts were written by this gateway from parsed requests; a text that is not a body is a bug. */
export function jobBody(callJson: string, defaultsJson: string): CallBody {
  const { prompt, messages, system, temperature, params, raw } = stored.parse({
    ...parseObject(defaultsJson),
    ...parseObject(callJson),
  });
  const body: CallBody = {};
  if (raw !== undefined) body.raw = raw;
  if (prompt !== undefined) body.prompt = prompt;
  if (messages !== undefined) body.messages = messages;
  if (system !== undefined) body.system = system;
  if (temperature !== undefined) body.temperature = temperature;
  if (params !== undefined) body.params = params;
  return body;
}

function parseObject(text: string): object {
  const value: unknown = JSON.parse(text);
  return typeof value === "object" && value !== null ? value : {};
}
