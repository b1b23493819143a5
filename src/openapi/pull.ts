/** The routes of pull workers. */
import type { RouteConfig } from "@asteasolutions/zod-to-openapi";
import {
  claimBody,
  claimReply,
  completeBody,
  completeReply,
  heartbeatBody,
  heartbeatReply,
  workerToken,
} from "../contract/pull/items.ts";
import { guarded, idParameter, json, jsonBody } from "./parts.ts";

export const pull: RouteConfig[] = [
  guarded({
    method: "post",
    path: "/runs/{id}/worker-token",
    summary: "Makes a token with which a worker may claim, keep and complete items of this run, and nothing else",
    parameters: [idParameter],
    responses: { 201: json(workerToken, "The token, which expires with the run") },
  }),
  guarded({
    method: "post",
    path: "/runs/{id}/claim",
    summary: "Leases calls of the run whose upstream is of the kind `pull` to a worker",
    parameters: [idParameter],
    request: jsonBody(claimBody),
    responses: { 200: json(claimReply, "The items; an empty list if there were none in time") },
  }),
  guarded({
    method: "post",
    path: "/runs/{id}/heartbeat",
    summary: "Renews leases of items, and says which are cancelled or lost",
    parameters: [idParameter],
    request: jsonBody(heartbeatBody),
    responses: { 200: json(heartbeatReply, "Each lease as it is now") },
  }),
  guarded({
    method: "post",
    path: "/runs/{id}/complete",
    summary: "Delivers the answer to an item, or its error. Returns when it is stored; may be repeated",
    parameters: [idParameter],
    request: jsonBody(completeBody),
    responses: { 200: json(completeReply, "The answer was used. If the lease was lost: 409 `lease_lost`") },
  }),
];
