/** Routes of a run's log: its history, its events as they happen, and the client's own events. */
import * as z from "zod";
import { appendedReply, clientEvent } from "../events.ts";
import { CLIENT_EVENTS_PER_POST_MAX, LOG_BODY_BYTES_MAX } from "../../limits.ts";
import { asText, eventStream, header, idParameter, json, jsonBody, whole } from "./parts.ts";
import { CLIENTS, RUN_FIGURES, family } from "./record.ts";
import { atFirstUse } from "../../at-first-use.ts";

/** The fields that every line of a log has; the others depend on its `event_type`. */
export const logLine = atFirstUse(() =>
  z
    .looseObject({
      seq: z.int().min(1).meta({ description: "Number of the event in the run, from 1 without gaps" }),
      ts: z.iso.datetime(),
      run_id: z.string(),
      parent_run_id: z.string().nullable(),
      parallel_group_id: z.string().nullable(),
      depth: z.int(),
      step: z.int().nullable(),
      event_type: z.string().meta({
        description:
          "run_opened, group_started, attempt_started, attempt_ended, retry_scheduled, throttled, slot_completed, " +
          "slots_cancelled, slot_skipped, confirmation_awaited, group_confirmed, group_paused, group_resumed, group_completed, budget_refused, escalated, overrun, tool_called, child_opened, child_closed, credit_lost, " +
          "run_closed, or the type of a client's own event",
      }),
    })
    .meta({ id: "LogLine" }),
);

/** A trace in Chrome's JSON format. */
const trace = atFirstUse(() =>
  z
    .object({
      displayTimeUnit: z.literal("ms"),
      traceEvents: z.array(
        z.looseObject({
          ph: z.enum(["b", "e", "i", "C", "M"]),
          name: z.string(),
          pid: z.int(),
          tid: z.int(),
          ts: z.number().meta({ description: "Microseconds since 1970" }),
        }),
      ),
    })
    .meta({ id: "Trace" }),
);

const after = whole("after", "`seq` of the last event that the reader has; the response starts after it", {
  minimum: 0,
});

const added = {
  request: jsonBody(() => z.union([clientEvent(), z.array(clientEvent()).max(CLIENT_EVENTS_PER_POST_MAX)])),
  replies: { 201: json(appendedReply, "The events are stored") },
};

export const log = family("Log", {
  "GET /runs/:id/log": {
    auth: RUN_FIGURES,
    guide: "docs/log.md",
    summary: "Returns a run's log so far: one `LogLine` per line, as JSON",
    description:
      "A token has `log_readers_per_token_max` readers of a log at once, with those of its trace and its saved page; a further one is refused with 503.",
    parameters: [idParameter, after, whole("limit", "Most events of the response; absent = all", { minimum: 1 })],
    replies: { 200: asText("Lines in order of `seq`", "application/x-ndjson") },
  },
  "GET /runs/:id/trace.json": {
    auth: RUN_FIGURES,
    guide: "docs/log.md",
    summary: "Returns a run's log so far as a trace that ui.perfetto.dev and chrome://tracing open",
    parameters: [idParameter],
    replies: {
      200: json(trace, "Spans of groups, calls, attempts and tools; counters of calls in flight and of USD"),
    },
  },
  "GET /runs/:id/page.html": {
    auth: RUN_FIGURES,
    guide: "docs/run-page.md",
    summary: "Returns the page of a run as one file that shows the run without a gateway, for a report of a problem",
    parameters: [idParameter],
    replies: { 200: asText("The page, as a download", "text/html") },
  },
  "POST /runs/:id/log": {
    auth: CLIENTS,
    guide: "docs/log.md",
    bound: LOG_BODY_BYTES_MAX,
    summary: "Adds the client's own events to a run's log",
    parameters: [idParameter],
    ...added,
  },
  "POST /log": {
    auth: CLIENTS,
    guide: "docs/log.md",
    bound: LOG_BODY_BYTES_MAX,
    summary: "Adds the client's own events to the log of the caller's own run",
    ...added,
  },
  "GET /runs/:id/events": {
    auth: RUN_FIGURES,
    guide: "docs/log.md",
    summary: "Streams a run's log from its beginning, then each new event, until the run ends",
    description:
      "Server-sent events: `id` is `seq`, `event` is `event_type`, `data` is a `LogLine`. A WebSocket upgrade sends the " +
      "same lines as text messages; resume it with `after`. Of a client's event above `followed_event_chars_max` a line has " +
      "`event_type`, `step`, `hasError`, the beginning of its text (`head`), its size (`bytes`) and its address (`event_url`). " +
      "A token has `followers_per_token_max` followers of a run; a further one is refused with 503.",
    parameters: [
      idParameter,
      after,
      header("last-event-id", "Resume after this event. Browsers send this header themselves; it overrides `after`", {
        pattern: "^\\d{0,15}$",
      }),
    ],
    replies: {
      101: { description: "A WebSocket, if the request has `Upgrade: websocket`" },
      200: { description: "Server-sent events", content: eventStream("JSON of a `LogLine`") },
    },
  },
});
