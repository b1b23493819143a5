/** Routes that make LLM calls. */
import * as z from "zod";
import { batchBody, batchReply, quoteReply } from "../batch.ts";
import { dagBody } from "../graph/dag.ts";
import { acceptedPlan, planBody, planReply } from "../graph/plan.ts";
import { dagPatch } from "../graph/patch.ts";
import { dagQuoteReply, graphReply, graphValidation } from "../graph/replies.ts";
import { runningGroup } from "../groups.ts";
import { queryBody, queryReply } from "../query.ts";
import { BODY_BYTES_MAX, CALL_BODY_BYTES_MAX, GRAPH_BODY_BYTES_MAX, GRAPH_CHANGE_BYTES_MAX } from "../../limits.ts";
import {
  GRAPH_ID,
  answerHeaders,
  flag,
  header,
  idempotencyKey,
  idParameter,
  json,
  jsonBody,
  slotStreams,
  someText,
  traceHeader,
  traceHeaders,
} from "./parts.ts";
import { CLIENTS, family } from "./record.ts";

const durable = [
  ...traceHeaders,
  idempotencyKey,
  header("prefer", "`respond-async`: respond with 202 at once. The group continues; read it at `Location`"),
];

const replayed = answerHeaders({
  ...traceHeader,
  "idempotent-replayed": "`true` if the response was recorded for an earlier request with the same key",
});

const accepted = {
  ...json(runningGroup, "The group is running"),
  headers: answerHeaders({
    ...traceHeader,
    location: "Path of the group",
    "preference-applied": "respond-async",
    "idempotent-replayed": "`true` if an earlier request with the same key opened the group",
  }),
};

const graphBody = {
  body: {
    required: true,
    content: {
      "application/json": { schema: dagBody },
      "application/x-ndjson": { schema: someText },
      "text/x-llmcompiler": { schema: someText },
    },
  },
};

export const calls = family("Calls", {
  "POST /query": {
    auth: CLIENTS,
    guide: "docs/query.md",
    bound: CALL_BODY_BYTES_MAX,
    summary: "Makes one LLM call",
    parameters: durable,
    request: {
      body: {
        required: true,
        content: { "application/json": { schema: queryBody }, "text/plain": { schema: someText } },
      },
    },
    replies: {
      200: {
        description: "The answer; only its text if `Accept` is `text/plain`",
        headers: replayed,
        content: { "application/json": { schema: queryReply }, "text/plain": { schema: { type: "string" } } },
      },
      202: accepted,
    },
  },
  "POST /batch": {
    auth: CLIENTS,
    guide: "docs/batch.md",
    bound: BODY_BYTES_MAX,
    summary: "Makes an ordered list of LLM calls in parallel",
    parameters: [flag("quote", "`1`: return an estimate of the cost; nothing is reserved or sent"), ...durable],
    request: jsonBody(batchBody),
    replies: {
      200: {
        description:
          "One result per call in input order, after all have ended or streamed as each ends; the estimate if `quote=1`",
        headers: replayed,
        content: {
          "application/json": { schema: () => z.union([batchReply(), quoteReply()]) },
          ...slotStreams,
        },
      },
      202: accepted,
    },
  },
  "POST /dag": {
    auth: CLIENTS,
    guide: "docs/graphs.md",
    bound: GRAPH_BODY_BYTES_MAX,
    summary: "Makes LLM calls that depend on each other",
    parameters: [flag("quote", "`1`: return an estimate of the cost; nothing is reserved or sent"), ...durable],
    request: graphBody,
    replies: {
      200: {
        description:
          "What became of each task, after all have ended or streamed as each ends; the estimate if `quote=1`",
        headers: replayed,
        content: {
          "application/json": { schema: () => z.union([graphReply(), dagQuoteReply()]) },
          ...slotStreams,
        },
      },
      202: accepted,
    },
  },
  "PATCH /dag/:id": {
    auth: CLIENTS,
    guide: "docs/graphs.md",
    bound: GRAPH_CHANGE_BYTES_MAX,
    where: GRAPH_ID,
    summary: "Changes a graph that runs, all or nothing",
    parameters: [idParameter],
    request: jsonBody(dagPatch),
    replies: {
      200: json(
        graphReply,
        "The graph after the change. The same request once more is answered, and not applied twice",
      ),
    },
  },
  "POST /plan": {
    auth: CLIENTS,
    guide: "docs/graphs.md",
    bound: CALL_BODY_BYTES_MAX,
    summary: "Has a model write a graph of calls for a goal, and runs it",
    parameters: durable,
    request: jsonBody(planBody),
    replies: {
      200: {
        description:
          "The plan, or the plans, with what became of them; with `stream` the graph, whole or streamed as its tasks end",
        headers: replayed,
        content: {
          "application/json": { schema: () => z.union([planReply(), graphReply()]) },
          ...slotStreams,
        },
      },
      202: { ...accepted, ...json(acceptedPlan, "The graph is running") },
    },
  },
  "POST /groups/:id/retry": {
    auth: CLIENTS,
    guide: "docs/groups.md",
    summary: "Retries a group that has ended: makes its calls again, except those that completed",
    parameters: [idParameter, ...durable],
    replies: {
      200: {
        description: "The new group with all its results, after its end or streamed as each call ends",
        headers: replayed,
        content: {
          "application/json": { schema: () => z.union([batchReply(), graphReply()]) },
          ...slotStreams,
        },
      },
      202: accepted,
    },
  },
  "POST /dag/:id/retry": {
    auth: CLIENTS,
    guide: "docs/graphs.md",
    summary: "Runs a graph that has ended once more, without the calls that completed",
    parameters: [idParameter, ...durable],
    replies: {
      200: {
        description: "The new graph, after all of its tasks have ended or streamed as each ends",
        headers: replayed,
        content: {
          "application/json": { schema: graphReply },
          ...slotStreams,
        },
      },
      202: accepted,
    },
  },
  "POST /dag/validate": {
    auth: CLIENTS,
    guide: "docs/graphs.md",
    opensNothing: true,
    bound: GRAPH_BODY_BYTES_MAX,
    summary: "Checks a graph of calls; nothing is stored, reserved or sent",
    request: graphBody,
    replies: {
      200: json(graphValidation, "The graph is valid; an invalid one is refused with 422 `invalid_graph`"),
    },
  },
});
