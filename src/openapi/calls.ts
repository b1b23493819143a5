/** Routes that make calls. */
import { z, type RouteConfig } from "@hono/zod-openapi";
import { batchBody, batchReply, quoteReply } from "../contract/batch.ts";
import { runningGroup } from "../contract/groups.ts";
import { queryBody, queryReply } from "../contract/query.ts";
import { answerHeaders, asText, flag, guarded, header, idempotencyKey, json, jsonBody } from "./parts.ts";

const durable = [
  idempotencyKey,
  header("prefer", "`respond-async`: 202 at once; the work goes on and is found at `Location`"),
];

const replayed = answerHeaders({ "idempotent-replayed": "true where the answer is one that was recorded" });

const accepted = {
  ...json(runningGroup, "The group runs on"),
  headers: answerHeaders({
    location: "Where the group is found",
    "preference-applied": "respond-async",
    "idempotent-replayed": "true where an earlier request with the same key has opened the group",
  }),
};

export const calls: RouteConfig[] = [
  guarded({
    method: "post",
    path: "/query",
    summary: "One call",
    parameters: durable,
    request: {
      body: {
        required: true,
        content: { "application/json": { schema: queryBody }, "text/plain": { schema: { type: "string" } } },
      },
    },
    responses: {
      200: {
        description: "The answer; as bare text if `Accept` asks for text/plain",
        headers: replayed,
        content: { "application/json": { schema: queryReply }, "text/plain": { schema: { type: "string" } } },
      },
      202: accepted,
    },
  }),
  guarded({
    method: "post",
    path: "/batch",
    summary: "An ordered list of calls",
    parameters: [flag("quote", "1 = what it would cost; nothing is reserved or sent"), ...durable],
    request: jsonBody(batchBody),
    responses: {
      200: {
        description: "One result per call in input order, whole or as each slot ends; or the quote",
        headers: replayed,
        content: {
          "application/json": { schema: z.union([batchReply, quoteReply]) },
          ...asText("", "application/x-ndjson", "text/event-stream").content,
        },
      },
      202: accepted,
    },
  }),
];
