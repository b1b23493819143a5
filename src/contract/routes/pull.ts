/** The routes of pull workers. */
import {
  claimBody,
  claimReply,
  completeBody,
  completeReply,
  heartbeatBody,
  heartbeatReply,
  workerToken,
} from "../pull.ts";
import { CALL_BODY_BYTES_MAX, PATCH_BODY_BYTES_MAX } from "../../limits.ts";
import { idParameter, json, jsonBody } from "./parts.ts";
import { CLIENTS, WORKERS, family } from "./record.ts";

export const pull = family("Pull workers", {
  "POST /runs/:id/worker-token": {
    auth: CLIENTS,
    guide: "docs/pull-workers.md",
    opensNothing: true,
    summary: "Makes a token with which a worker may claim, keep and complete items of this run, and nothing else",
    parameters: [idParameter],
    replies: { 201: json(workerToken, "The token, which expires with the run") },
  },
  "POST /runs/:id/claim": {
    auth: WORKERS,
    guide: "docs/pull-workers.md",
    opensNothing: true,
    bound: PATCH_BODY_BYTES_MAX,
    summary: "Leases calls of the run whose upstream is of the kind `pull` to a worker",
    parameters: [idParameter],
    request: jsonBody(claimBody),
    replies: { 200: json(claimReply, "The items; an empty list if there were none in time") },
  },
  "POST /runs/:id/heartbeat": {
    auth: WORKERS,
    guide: "docs/pull-workers.md",
    opensNothing: true,
    bound: PATCH_BODY_BYTES_MAX,
    summary: "Renews leases of items, and says which are cancelled or lost",
    parameters: [idParameter],
    request: jsonBody(heartbeatBody),
    replies: { 200: json(heartbeatReply, "Each lease as it is now") },
  },
  "POST /runs/:id/complete": {
    auth: WORKERS,
    guide: "docs/pull-workers.md",
    opensNothing: true,
    bound: CALL_BODY_BYTES_MAX,
    summary: "Delivers the answer to an item, or its error. Returns when it is stored; may be repeated",
    parameters: [idParameter],
    request: jsonBody(completeBody),
    replies: { 200: json(completeReply, "The answer was used. If the lease was lost: 409 `lease_lost`") },
  },
});
