/** Routes of runs and their budgets. */
import { z, type RouteConfig } from "@hono/zod-openapi";
import {
  budgetDocument,
  openedRunDocument,
  patchBody,
  runBody,
  runDocument,
  runList,
  runListQuery,
  runLookDocument,
  usageTotals,
} from "../contract/runs.ts";
import { flag, guarded, idempotencyKey, idParameter, json, jsonBody } from "./parts.ts";

const flushed = z.object({ object: z.literal("flush"), flushed: z.literal(true) }).openapi("Flushed");

const reset = flag("reset", "1 = shown this once more, then counted from zero");

export const runs: RouteConfig[] = [
  guarded({
    method: "post",
    path: "/runs",
    summary: "Opens a run: a budget, a width and a token; asked with a run token, a child run inside that run",
    description:
      "A child run may be opened under an Idempotency-Key: the same request again is answered with that child, as it is " +
      "then, and a token. A root run takes none.",
    parameters: [idempotencyKey],
    request: { body: { content: { "application/json": { schema: runBody } } } },
    responses: { 201: json(openedRunDocument, "The run and its token, which is shown only here") },
  }),
  guarded({
    method: "get",
    path: "/runs",
    summary: "Lists runs, newest first (operator)",
    request: { query: runListQuery },
    responses: { 200: json(runList, "One page") },
  }),
  guarded({
    method: "get",
    path: "/runs/{id}",
    summary: "One run",
    parameters: [idParameter, flag("subtree", "1 = with the figures of all runs below it, under `subtree`")],
    responses: { 200: json(runLookDocument, "The run") },
  }),
  guarded({
    method: "patch",
    path: "/runs/{id}",
    summary: "New limits, width or pause (operator)",
    parameters: [idParameter],
    request: jsonBody(patchBody),
    responses: { 200: json(runDocument, "The run as it is now") },
  }),
  guarded({
    method: "post",
    path: "/runs/{id}/close",
    summary: "Ends a run and all below it: what runs finishes, and the rest of the budget flows back",
    parameters: [idParameter],
    responses: { 200: json(runDocument, "The run") },
  }),
  guarded({
    method: "delete",
    path: "/runs/{id}",
    summary: "Cancels a run and all below it, at once: connections to upstreams are closed",
    parameters: [idParameter],
    responses: { 200: json(runDocument, "The run") },
  }),
  guarded({
    method: "get",
    path: "/run",
    summary: "The caller's own run",
    responses: { 200: json(runDocument, "The run") },
  }),
  guarded({
    method: "get",
    path: "/budget",
    summary: "What is left of the caller's budget",
    responses: { 200: json(budgetDocument, "Four numbers in each dimension") },
  }),
  guarded({
    method: "get",
    path: "/runs/{id}/usage",
    summary: "Calls, tokens and cost of a run since its usage was last reset, in all and by model",
    parameters: [idParameter, reset],
    responses: { 200: json(usageTotals, "The totals") },
  }),
  guarded({
    method: "get",
    path: "/usage",
    summary: "The same of the caller's own run",
    parameters: [reset],
    responses: { 200: json(usageTotals, "The totals") },
  }),
  guarded({
    method: "post",
    path: "/runs/{id}/stats/reset",
    summary: "Counts `stats` and `metrics` of a run from zero again; its budget stays as it is",
    parameters: [idParameter],
    responses: { 200: json(runDocument, "The run as it is now") },
  }),
  guarded({
    method: "post",
    path: "/runs/{id}/flush",
    summary: "Closes the grouping window: the next call of /query begins another",
    parameters: [idParameter],
    responses: { 200: json(flushed, "It is closed") },
  }),
];
