/** Building blocks of the records of routes. */
import { errorBody } from "../errors.ts";
import { IDEMPOTENCY_KEY_CHARS_MAX } from "../../limits.ts";
import { TRACE_HEADER } from "../../trace-context.ts";
import type { Shown } from "./record.ts";

const text = { type: "string" } as const;

/** A request body that is text: an empty one is refused. */
export const someText = { type: "string" as const, minLength: 1 };

/** A JSON response. */
export const json = (schema: Shown, description: string) => ({
  description,
  content: { "application/json": { schema } },
});

/** A text response with one or more media types, such as a stream. */
export const asText = (description: string, ...types: string[]) => ({
  description,
  content: Object.fromEntries(types.map((type) => [type, { schema: text }])),
});

/**
 * A stream of server-sent events. OpenAPI 3.1 has no words for a stream's items: as in its tools, the schema is that of
 * one event.
 */
export const eventStream = (data: string) => ({
  "text/event-stream": {
    schema: {
      type: "object" as const,
      properties: { id: text, event: text, data: { ...text, description: data } },
      required: ["data"],
    },
  },
});

/** A group's slots as they end: the two forms of stream that a client can choose with `Accept`. */
export const slotStreams = {
  "application/x-ndjson": { schema: text },
  ...eventStream("JSON of a slot that has ended; of the group, at its end"),
};

/** A required JSON body. */
export const jsonBody = (schema: Shown) => ({
  body: { required: true, content: { "application/json": { schema } } },
});

export const refusal = json(errorBody, "The request was refused or failed; `error.code` has the reason");

/** What `:id` of a graph matches: ids of graphs never begin with a v, and `/dag/validate` is another path. */
export const GRAPH_ID = { id: "[^v/][^/]*" } as const;

export const idParameter = { name: "id", in: "path", required: true, schema: text } as const;

/** An optional query parameter that is 1 for yes; 0 is the same as its absence. */
export const flag = (name: string, description: string) => {
  const schema = { type: "string" as const, enum: ["0", "1"] };
  return { name, in: "query" as const, required: false, description, schema };
};

/** Fifteen digits, which a number holds exactly: `queryInt` takes no more. */
const QUERY_INT_MAX = 999_999_999_999_999;

/** An optional query parameter that is an integer within bounds. */
export const whole = (name: string, description: string, bounds: { minimum: number; maximum?: number }) => {
  const schema = { type: "integer" as const, maximum: QUERY_INT_MAX, ...bounds };
  return { name, in: "query" as const, required: false, description, schema };
};

/** An optional request header. */
export const header = (
  name: string,
  description: string,
  bounds: { maxLength?: number; enum?: string[]; pattern?: string } = {},
) => {
  const schema = { type: "string" as const, ...bounds };
  return { name, in: "header" as const, required: false, description, schema };
};

/** The header that makes a request safe to repeat. */
export const idempotencyKey = header(
  "idempotency-key",
  "A repeated request with the same key and body returns the result of the first one, running or ended, at no further cost. The same key with another body is refused with 409",
  { maxLength: IDEMPOTENCY_KEY_CHARS_MAX, pattern: "^[!-~]+$" },
);

/** The headers that put what a client asks for into the client's trace. */
export const traceHeaders = [
  header(
    "traceparent",
    "The client's span (W3C Trace Context): the exported spans of what the request asks for are its children. An invalid one is ignored",
  ),
  header("tracestate", "Passed along with `traceparent`"),
];

/** The header that names the trace of these spans. */
export const traceHeader = {
  [TRACE_HEADER]:
    "Id of the trace in which the calls' spans are exported, if the gateway exports any: 32 hexadecimal digits",
};

/** Response headers, by name: their descriptions. */
export const answerHeaders = (descriptions: Record<string, string>) =>
  Object.fromEntries(Object.entries(descriptions).map(([name, description]) => [name, { description, schema: text }]));
