/** Routes of runs and their budgets. */
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
} from "../runs.ts";
import { runSearch, runSearchQuery } from "../search.ts";
import { PATCH_BODY_BYTES_MAX, RUN_BODY_BYTES_MAX } from "../../limits.ts";
import {
  answerHeaders,
  flag,
  idempotencyKey,
  idParameter,
  json,
  jsonBody,
  traceHeader,
  traceHeaders,
} from "./parts.ts";
import { CLIENTS, OPERATOR, FIGURES, RUN_FIGURES, family } from "./record.ts";

const flushed = z.object({ object: z.literal("flush"), flushed: z.literal(true) }).meta({ id: "Flushed" });

const reset = flag("reset", "`1`: return the totals once more, then reset them to zero");
const queue = flag("queue", "`1`: add as `queue` what its queued calls wait for");
const subtree = flag("subtree", "`1`: add the figures of all runs below it as `subtree`");

export const runs = family("Runs", {
  "POST /runs": {
    auth: CLIENTS,
    guide: "docs/runs.md",
    bound: RUN_BODY_BYTES_MAX,
    summary: "Opens a run and returns its token. With a run token as the credential, opens a child run",
    description:
      "A child run reserves its whole budget in its parent. With an Idempotency-Key, a repeated request returns the same " +
      "child in its current state, with a token. A root run does not accept the header. With `wait_ms` the request waits for " +
      "room in the parent: 409 `no_capacity` with `reasons` if there is none in time, 422 `infeasible` if it can never fit.",
    parameters: [idempotencyKey, ...traceHeaders],
    request: { body: { content: { "application/json": { schema: runBody } } } },
    replies: {
      201: {
        ...json(openedRunDocument, "The run and its token. No other response contains the token"),
        headers: answerHeaders(traceHeader),
      },
    },
  },
  "GET /runs": {
    auth: FIGURES,
    guide: "docs/runs.md",
    summary: "Lists root runs, newest first (operator only)",
    request: { query: runListQuery },
    replies: { 200: json(() => z.union([runList(), runSummaryList()]), "One page; with `view=summary`, of summaries") },
  },
  "GET /runs/:id": {
    auth: RUN_FIGURES,
    guide: "docs/runs.md",
    summary: "Describes a run",
    parameters: [idParameter, subtree, queue],
    replies: { 200: json(runLookDocument, "The run") },
  },
  "GET /runs/:id/search": {
    auth: CLIENTS,
    guide: "docs/runs.md",
    summary: "Finds the calls of a run by a text in their ids, prompts, answers and errors",
    parameters: [idParameter],
    request: { query: runSearchQuery },
    replies: { 200: json(runSearch, "One page: it may have no match although there are more pages") },
  },
  "GET /runs/:id/children": {
    auth: RUN_FIGURES,
    guide: "docs/runs.md",
    summary: "Lists the runs that a run has opened, newest first, whether they have ended or not",
    parameters: [idParameter],
    request: { query: childListQuery },
    replies: { 200: json(runList, "One page") },
  },
  "PATCH /runs/:id": {
    auth: OPERATOR,
    guide: "docs/runs.md",
    opensNothing: true,
    bound: PATCH_BODY_BYTES_MAX,
    summary: "Changes a run's limits, width, lifetime or models, pauses or resumes it (operator only)",
    parameters: [idParameter],
    request: jsonBody(patchBody),
    replies: { 200: json(patchedRunDocument, "The run as it is now") },
  },
  "POST /runs/:id/close": {
    auth: CLIENTS,
    guide: "docs/runs.md",
    opensNothing: true,
    summary:
      "Closes a run and all runs below it: calls in flight finish, queued calls are cancelled, the unspent budget returns to the parent",
    parameters: [idParameter],
    replies: { 200: json(runDocument, "The run") },
  },
  "DELETE /runs/:id": {
    auth: CLIENTS,
    guide: "docs/runs.md",
    summary: "Cancels a run and all runs below it at once: connections to upstreams are closed",
    parameters: [idParameter],
    replies: { 200: json(runDocument, "The run") },
  },
  "GET /run": {
    auth: CLIENTS,
    guide: "docs/runs.md",
    summary: "Describes the caller's own run",
    replies: { 200: json(runDocument, "The run") },
  },
  "GET /budget": {
    auth: CLIENTS,
    guide: "docs/runs.md",
    summary: "Returns the budget of the caller's own run",
    replies: { 200: json(budgetDocument, "Limit, spent, reserved and remaining, in each dimension") },
  },
  "GET /runs/:id/usage": {
    auth: RUN_FIGURES,
    guide: "docs/runs.md",
    summary:
      "Returns calls, tokens and cost of a run since the last reset, in total and by model; child runs are not included",
    parameters: [idParameter, reset, subtree],
    replies: { 200: json(usageTotals, "The totals") },
  },
  "GET /usage": {
    auth: CLIENTS,
    guide: "docs/runs.md",
    summary: "The same for the caller's own run",
    parameters: [reset, subtree],
    replies: { 200: json(usageTotals, "The totals") },
  },
  "POST /runs/:id/stats/reset": {
    auth: CLIENTS,
    guide: "docs/runs.md",
    opensNothing: true,
    summary: "Resets `stats` and `metrics` of a run to zero; its budget does not change",
    parameters: [idParameter],
    replies: { 200: json(runDocument, "The run as it is now") },
  },
  "POST /runs/:id/flush": {
    auth: CLIENTS,
    guide: "docs/query.md",
    opensNothing: true,
    summary: "Closes the coalescing window: the next call of /query starts a new group",
    parameters: [idParameter],
    replies: { 200: json(flushed, "The window is closed") },
  },
});
