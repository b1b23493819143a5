/** What the descriptions of routes are made of. */
import type { RouteConfig, z } from "@hono/zod-openapi";
import { errorBody } from "../contract/errors.ts";
import { IDEMPOTENCY_KEY_CHARS_MAX } from "../limits.ts";

const text = { type: "string" } as const;

/** A JSON answer. */
export const json = (schema: z.ZodType, description: string) => ({
  description,
  content: { "application/json": { schema } },
});

/** An answer that is text of a type of its own, such as a stream. */
export const asText = (description: string, ...types: string[]) => ({
  description,
  content: Object.fromEntries(types.map((type) => [type, { schema: text }])),
});

/** A JSON body that a route cannot do without. */
export const jsonBody = (schema: z.ZodType) => ({
  body: { required: true, content: { "application/json": { schema } } },
});

export const refusal = json(errorBody, "Refused or failed; `error.code` says why");

/** A route that needs no credential. */
export const open = (path: string, summary: string, schema: z.ZodType): RouteConfig => ({
  method: "get",
  path,
  summary,
  responses: { 200: json(schema, summary), default: refusal },
});

/** A route that needs one. */
export const guarded = (route: Omit<RouteConfig, "security">): RouteConfig => ({
  ...route,
  security: [{ bearer: [] }, { basic: [] }, { apiKey: [] }],
  responses: { ...route.responses, default: refusal },
});

export const idParameter = { name: "id", in: "path", required: true, schema: text } as const;

/** A query parameter that is on or left out. */
export const flag = (name: string, description: string) => {
  const schema = { type: "string" as const, enum: ["1"] };
  return { name, in: "query" as const, required: false, description, schema };
};

/** A query parameter that is a whole number within bounds. */
export const whole = (name: string, description: string, bounds: { minimum: number; maximum?: number }) => {
  const schema = { type: "integer" as const, ...bounds };
  return { name, in: "query" as const, required: false, description, schema };
};

/** A request header that may be left out. */
export const header = (name: string, description: string, bounds: { maxLength?: number; enum?: string[] } = {}) => {
  const schema = { type: "string" as const, ...bounds };
  return { name, in: "header" as const, required: false, description, schema };
};

/** The header by which a request may be made again. */
export const idempotencyKey = header(
  "idempotency-key",
  "The same key with the same body is answered with what the first request led to, finished or still running, at no cost; with another body it is refused with 409",
  { maxLength: IDEMPOTENCY_KEY_CHARS_MAX },
);

/** Headers of an answer: name and what it says. */
export const answerHeaders = (told: Record<string, string>) =>
  Object.fromEntries(Object.entries(told).map(([name, description]) => [name, { description, schema: text }]));
