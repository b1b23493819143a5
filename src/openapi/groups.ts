/** Routes of groups that are running or have ended. */
import { z, type RouteConfig } from "@hono/zod-openapi";
import { batchReply } from "../contract/batch.ts";
import { resultsPage, runningGroup } from "../contract/groups.ts";
import { GROUP_WAIT_MS_MAX, RESULTS_PAGE_DEFAULT, RESULTS_PAGE_MAX } from "../limits.ts";
import { asText, guarded, idParameter, json, whole } from "./parts.ts";

/** Where a group stands after it was cancelled, or had ended before. */
const stoppedGroup = runningGroup.extend({ ended_at: z.iso.datetime().nullable() }).openapi("StoppedGroup");

const indexParameter = {
  name: "index",
  in: "path" as const,
  required: true,
  description: "The slot's place in the group, from 0",
  schema: { type: "integer" as const, minimum: 0 },
};

export const groups: RouteConfig[] = [
  guarded({
    method: "get",
    path: "/groups/{id}",
    summary: "A group: where it stands, and once it has ended what /batch would have answered",
    parameters: [
      idParameter,
      whole("wait_ms", "How long to wait for its end", { minimum: 0, maximum: GROUP_WAIT_MS_MAX }),
    ],
    responses: {
      200: {
        description: "The group; once it has ended, also as events if `Accept` asks for them",
        content: {
          "application/json": { schema: z.union([runningGroup, batchReply]) },
          ...asText("", "application/x-ndjson", "text/event-stream").content,
        },
      },
    },
  }),
  guarded({
    method: "get",
    path: "/groups/{id}/results",
    summary: "Its slots in input order, by page; or each as it ends",
    parameters: [
      idParameter,
      whole("after", "The last index that the client has: the `next_after` of the page before", { minimum: -1 }),
      whole("limit", `Slots in the page, fewer where they are large; default ${RESULTS_PAGE_DEFAULT}`, {
        minimum: 1,
        maximum: RESULTS_PAGE_MAX,
      }),
    ],
    responses: {
      200: {
        description: "One page; as events, all slots that have ended and the others as they do",
        content: {
          "application/json": { schema: resultsPage },
          ...asText("", "application/x-ndjson", "text/event-stream").content,
        },
      },
    },
  }),
  guarded({
    method: "get",
    path: "/groups/{id}/report",
    summary: "A group as a report: what each agent did, what failed and what to do about it",
    parameters: [idParameter],
    responses: { 200: asText("Tables", "text/markdown") },
  }),
  guarded({
    method: "delete",
    path: "/groups/{id}",
    summary: "Cancels a group: what waits never starts, connections to upstreams are closed",
    parameters: [idParameter],
    responses: { 200: json(stoppedGroup, "Where it stands") },
  }),
  guarded({
    method: "delete",
    path: "/groups/{id}/slots/{index}",
    summary: "Cancels one call of a group: it never starts, or its connection is closed; the others go on",
    parameters: [idParameter, indexParameter],
    responses: { 200: json(stoppedGroup, "Where the group stands") },
  }),
];
