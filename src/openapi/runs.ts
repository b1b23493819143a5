/** Routes of runs and their budgets. */
import type { RouteConfig } from "@asteasolutions/zod-to-openapi";
import * as z from "zod";
import {
  budgetDocument,
  openedRunDocument,
  patchBody,
  patchedRunDocument,
  runBody,
  runDocument,
  runList,
  childListQuery,
  runListQuery,
  runSummaryList,
  runLookDocument,
  usageTotals,
} from "../contract/runs.ts";
import {
  answerHeaders,
  flag,
  guarded,
  idempotencyKey,
  idParameter,
  json,
  jsonBody,
  traceHeader,
  traceHeaders,
} from "./parts.ts";

const flushed = z.object({ object: z.literal("flush"), flushed: z.literal(true) }).meta({ id: "Flushed" });

const reset = flag("reset", "`1`: return the totals once more, then reset them to zero");
const subtree = flag("subtree", "`1`: add the figures of all runs below it as `subtree`");

export const runs: RouteConfig[] = [
  guarded({
    method: "post",
    path: "/runs",
    summary: "Opens a run and returns its token. With a run token as the credential, opens a child run",
    description:
      "A child run reserves its whole budget in its parent. With an Idempotency-Key, a repeated request returns the same " +
      "child in its current state, with a token. A root run does not accept the header. With `wait_ms` the request waits for " +
      "room in the parent: 409 `no_capacity` with `reasons` if there is none in time, 422 `infeasible` if it can never fit.",
    parameters: [idempotencyKey, ...traceHeaders],
    request: { body: { content: { "application/json": { schema: runBody } } } },
    responses: {
      201: {
        ...json(openedRunDocument, "The run and its token. No other response contains the token"),
        headers: answerHeaders(traceHeader),
      },
    },
  }),
  guarded({
    method: "get",
    path: "/runs",
    summary: "Lists root runs, newest first (operator only)",
    request: { query: runListQuery },
    responses: { 200: json(z.union([runList, runSummaryList]), "One page; with `view=summary`, of summaries") },
  }),
  guarded({
    method: "get",
    path: "/runs/{id}",
    summary: "Describes a run",
    parameters: [idParameter, subtree],
    responses: { 200: json(runLookDocument, "The run") },
  }),
  guarded({
    method: "get",
    path: "/runs/{id}/children",
    summary: "Lists the runs that a run has opened, newest first, whether they have ended or not",
    parameters: [idParameter],
    request: { query: childListQuery },
    responses: { 200: json(runList, "One page") },
  }),
  guarded({
    method: "patch",
    path: "/runs/{id}",
    summary: "Changes a run's limits, width, lifetime or models, pauses or resumes it (operator only)",
    parameters: [idParameter],
    request: jsonBody(patchBody),
    responses: { 200: json(patchedRunDocument, "The run as it is now") },
  }),
  guarded({
    method: "post",
    path: "/runs/{id}/close",
    summary:
      "Closes a run and all runs below it: calls in flight finish, queued calls are cancelled, the unspent budget returns to the parent",
    parameters: [idParameter],
    responses: { 200: json(runDocument, "The run") },
  }),
  guarded({
    method: "delete",
    path: "/runs/{id}",
    summary: "Cancels a run and all runs below it at once: connections to upstreams are closed",
    parameters: [idParameter],
    responses: { 200: json(runDocument, "The run") },
  }),
  guarded({
    method: "get",
    path: "/run",
    summary: "Describes the caller's own run",
    responses: { 200: json(runDocument, "The run") },
  }),
  guarded({
    method: "get",
    path: "/budget",
    summary: "Returns the budget of the caller's own run",
    responses: { 200: json(budgetDocument, "Limit, spent, reserved and remaining, in each dimension") },
  }),
  guarded({
    method: "get",
    path: "/runs/{id}/usage",
    summary:
      "Returns calls, tokens and cost of a run since the last reset, in total and by model; child runs are not included",
    parameters: [idParameter, reset, subtree],
    responses: { 200: json(usageTotals, "The totals") },
  }),
  guarded({
    method: "get",
    path: "/usage",
    summary: "The same for the caller's own run",
    parameters: [reset, subtree],
    responses: { 200: json(usageTotals, "The totals") },
  }),
  guarded({
    method: "post",
    path: "/runs/{id}/stats/reset",
    summary: "Resets `stats` and `metrics` of a run to zero; its budget does not change",
    parameters: [idParameter],
    responses: { 200: json(runDocument, "The run as it is now") },
  }),
  guarded({
    method: "post",
    path: "/runs/{id}/flush",
    summary: "Closes the coalescing window: the next call of /query starts a new group",
    parameters: [idParameter],
    responses: { 200: json(flushed, "The window is closed") },
  }),
];
