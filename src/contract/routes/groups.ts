/** Routes of groups that are running or have ended. */
import * as z from "zod";
import { atFirstUse } from "../../at-first-use.ts";
import { batchReply } from "../batch.ts";
import { cancelGroupsBody, cancelGroupsReply } from "../cancel-groups.ts";
import { graphOutline, graphReply } from "../graph/replies.ts";
import { reportDocument, resultsPage, runningGroup, slotLook, slotNames } from "../groups.ts";
import { CANCEL_BODY_BYTES_MAX, GROUP_WAIT_MS_MAX, RESULTS_PAGE_DEFAULT, RESULTS_PAGE_MAX } from "../../limits.ts";
import { GRAPH_ID, asText, idParameter, json, jsonBody, slotStreams, whole } from "./parts.ts";
import { CLIENTS, RUN_FIGURES, family } from "./record.ts";

/** The state of a group after it was cancelled, or if it had already ended. */
const stoppedGroup = atFirstUse(() =>
  z.object({ ...runningGroup().shape, ended_at: z.iso.datetime().nullable() }).meta({ id: "StoppedGroup" }),
);

const indexParameter = {
  name: "index",
  in: "path" as const,
  required: true,
  description: "Index of the slot in the group, from 0",
  schema: { type: "integer" as const, minimum: 0 },
};

const fromParameter = {
  name: "from",
  in: "query" as const,
  required: false,
  description: "Index of the first; default 0",
  schema: { type: "integer" as const, minimum: 0 },
};

const formatParameter = {
  name: "format",
  in: "query" as const,
  required: false,
  description: "The form of the report; `coordinator` and `swarm` are JSON forms that other systems read",
  schema: { type: "string" as const, enum: ["markdown", "json", "coordinator", "swarm"] },
};

const inFlightParameter = {
  name: "in_flight",
  in: "query" as const,
  required: false,
  description: "What becomes of calls in flight: `abort`, the default, closes their connections; `end` lets them end",
  schema: { type: "string" as const, enum: ["abort", "end"] },
};

export const groups = family("Groups", {
  "GET /dag/:id": {
    auth: CLIENTS,
    guide: "docs/graphs.md",
    where: GRAPH_ID,
    summary: "Returns a graph and its tasks as they are now; the same as /groups/{id}",
    parameters: [
      idParameter,
      whole("wait_ms", "How long to wait for the graph to end, ms", { minimum: 0, maximum: GROUP_WAIT_MS_MAX }),
    ],
    replies: {
      200: {
        description: "The graph; as a stream, each task as it ends",
        content: {
          "application/json": { schema: () => z.union([graphReply(), runningGroup(), batchReply()]) },
          ...slotStreams,
        },
      },
    },
  },
  "GET /dag/:id/outline": {
    auth: RUN_FIGURES,
    guide: "docs/graphs.md",
    summary: "Returns which tasks a graph has and what each waits for, without their texts",
    parameters: [idParameter],
    replies: { 200: json(graphOutline, "The shape of the graph, as its last change has left it") },
  },
  "DELETE /dag/:id": {
    auth: CLIENTS,
    guide: "docs/graphs.md",
    where: GRAPH_ID,
    summary: "Cancels a graph: tasks that wait never start, connections to upstreams are closed",
    parameters: [idParameter, inFlightParameter],
    replies: { 200: json(stoppedGroup, "The state of the graph") },
  },
  "GET /groups/:id": {
    auth: RUN_FIGURES,
    guide: "docs/groups.md",
    summary:
      "Returns the state of a group; after it has ended, the reply that /batch would have sent; of a graph, that of /dag",
    parameters: [
      idParameter,
      whole("wait_ms", "How long to wait for the group to end, ms", { minimum: 0, maximum: GROUP_WAIT_MS_MAX }),
    ],
    replies: {
      200: {
        description: "The group. A group that has ended is also available as a stream, if `Accept` names one",
        content: {
          "application/json": { schema: () => z.union([runningGroup(), batchReply(), graphReply()]) },
          ...slotStreams,
        },
      },
    },
  },
  "GET /groups/:id/results": {
    auth: CLIENTS,
    guide: "docs/groups.md",
    summary: "Returns a group's slots in input order by page, or streams each slot as it ends",
    parameters: [
      idParameter,
      whole("after", "The last index that the client has: `next_after` of the previous page", { minimum: -1 }),
      whole("limit", `Slots per page; a page of large slots has fewer; default ${RESULTS_PAGE_DEFAULT}`, {
        minimum: 1,
        maximum: RESULTS_PAGE_MAX,
      }),
    ],
    replies: {
      200: {
        description: "One page; as a stream, all slots that have ended, then the others as they end",
        content: {
          "application/json": { schema: resultsPage },
          ...slotStreams,
        },
      },
    },
  },
  "GET /groups/:id/report": {
    auth: CLIENTS,
    guide: "docs/groups.md",
    summary: "Returns a report on a group: what each agent did, what failed and what to do next",
    parameters: [idParameter, formatParameter],
    replies: {
      200: {
        description: "Markdown tables, or JSON if `Accept` or `format` names it",
        content: {
          ...asText("", "text/markdown").content,
          "application/json": { schema: () => z.union([reportDocument(), z.looseObject({})]) },
        },
      },
    },
  },
  "POST /groups/:id/confirm": {
    auth: CLIENTS,
    guide: "docs/runs.md",
    summary: "Lets a group start that awaits its confirmation; any other group stays as it is",
    parameters: [idParameter],
    replies: { 200: json(stoppedGroup, "The state of the group") },
  },
  "POST /groups/cancel": {
    auth: CLIENTS,
    guide: "docs/groups.md",
    summary:
      "Cancels groups by the keys of their requests: queued calls never start, calls in flight end or are aborted",
    request: jsonBody(cancelGroupsBody),
    bound: CANCEL_BODY_BYTES_MAX,
    opensNothing: true,
    replies: { 200: json(cancelGroupsReply, "How these groups are by now, together") },
  },
  "DELETE /groups/:id": {
    auth: CLIENTS,
    guide: "docs/groups.md",
    summary: "Cancels a group: queued calls never start, connections to upstreams are closed",
    parameters: [idParameter, inFlightParameter],
    replies: { 200: json(stoppedGroup, "The state of the group") },
  },
  "GET /groups/:id/names": {
    auth: CLIENTS,
    guide: "docs/groups.md",
    summary: "Lists the ids that the client gave to the calls of a group, by index",
    parameters: [idParameter, fromParameter],
    replies: { 200: json(slotNames, "A page of them") },
  },
  "GET /groups/:id/slots/:index": {
    auth: CLIENTS,
    guide: "docs/groups.md",
    summary: "Returns one call of a group, with the beginnings of its prompt and its answer",
    parameters: [idParameter, indexParameter],
    replies: { 200: json(slotLook, "The call") },
  },
  "DELETE /groups/:id/slots/:index": {
    auth: CLIENTS,
    guide: "docs/groups.md",
    summary: "Cancels one call of a group: it never starts, or its connection is closed; the other calls continue",
    parameters: [idParameter, indexParameter],
    replies: { 200: json(stoppedGroup, "The state of the group") },
  },
});
