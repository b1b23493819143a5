/** Routes of a run's log: its history, its events as they happen, and what its client adds. */
import { z, type RouteConfig } from "@hono/zod-openapi";
import { appendedReply, clientEvent } from "../contract/events.ts";
import { CLIENT_EVENTS_PER_POST_MAX } from "../limits.ts";
import { asText, guarded, header, idParameter, json, jsonBody, whole } from "./parts.ts";

/** What every line of a log has, whatever has happened; the rest depends on its `event_type`. */
export const logLine = z
  .looseObject({
    seq: z.int().min(1).openapi({ description: "Its number in the run, from 1 and without gaps" }),
    ts: z.iso.datetime(),
    run_id: z.string(),
    parent_run_id: z.string().nullable(),
    parallel_group_id: z.string().nullable(),
    depth: z.int(),
    step: z.int().nullable(),
    event_type: z.string().openapi({
      description:
        "run_opened, group_started, attempt_started, attempt_ended, retry_scheduled, throttled, slot_completed, " +
        "slots_cancelled, group_completed, budget_refused, overrun, tool_called, child_opened, child_closed, " +
        "run_closed, or a client's own",
    }),
  })
  .openapi("LogLine");

const after = whole("after", "The last event that the reader has; what follows it is told", { minimum: 0 });

const added = {
  request: jsonBody(z.union([clientEvent, z.array(clientEvent).max(CLIENT_EVENTS_PER_POST_MAX)])),
  responses: { 201: json(appendedReply, "They are stored") },
};

export const log: RouteConfig[] = [
  guarded({
    method: "get",
    path: "/runs/{id}/log",
    summary: "A run's log up to now: one JSON object per line, each a `LogLine`",
    parameters: [idParameter, after],
    responses: { 200: asText("Lines in the order of their `seq`", "application/x-ndjson") },
  }),
  guarded({
    method: "post",
    path: "/runs/{id}/log",
    summary: "Adds the client's own events to a run's log",
    parameters: [idParameter],
    ...added,
  }),
  guarded({
    method: "post",
    path: "/log",
    summary: "Adds the client's own events to the log of the caller's own run",
    ...added,
  }),
  guarded({
    method: "get",
    path: "/runs/{id}/events",
    summary: "A run's log from its beginning and then as it grows, until the run has ended",
    description:
      "An event's `id` is its `seq`, its `event` the `event_type`, its `data` a `LogLine`. Asked to upgrade to a " +
      "WebSocket, the same lines come as text messages, and `after` resumes.",
    parameters: [
      idParameter,
      after,
      header("last-event-id", "Resumes after this event, as browsers do by themselves; wins over `after`"),
    ],
    responses: {
      101: { description: "A WebSocket, where the request asks for one" },
      200: asText("Server-sent events", "text/event-stream"),
    },
  }),
];
