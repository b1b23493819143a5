/** Routes that show the operator what all runs share. */
import type { RouteConfig } from "@asteasolutions/zod-to-openapi";
import { cassetteDocument, cassetteList } from "../contract/operator/cassettes.ts";
import { turnDocument } from "../contract/operator/turn.ts";
import { resumedUpstream, upstreamList } from "../contract/operator/upstreams.ts";
import { asText, guarded, idParameter, json } from "./parts.ts";

const tapeParameter = { ...idParameter, name: "tape" };

export const operator: RouteConfig[] = [
  guarded({
    method: "get",
    path: "/metrics",
    summary: "Shows what all runs have used, for Prometheus (operator only)",
    responses: { 200: asText("OpenMetrics 1.0", "application/openmetrics-text") },
  }),
  guarded({
    method: "get",
    path: "/upstreams",
    summary: "Shows the limits of each upstream's keys, and what waits for them (operator only)",
    responses: { 200: json(upstreamList, "One entry per key") },
  }),
  guarded({
    method: "post",
    path: "/upstreams/{name}/resume",
    summary:
      "Ends the stop of an upstream's keys at once, instead of with the next probe that succeeds (operator only)",
    parameters: [{ ...idParameter, name: "name" }],
    responses: { 200: json(resumedUpstream, "The keys as they are now") },
  }),
  guarded({
    method: "post",
    path: "/runs/{id}/turn",
    summary: "Makes a run do at once what its alarm would do, and says what it did (operator only)",
    parameters: [idParameter],
    responses: { 200: json(turnDocument, "The run before and after") },
  }),
  guarded({
    method: "get",
    path: "/cassettes",
    summary: "Lists the tapes that upstreams of the kind cassette record and replay (operator only)",
    responses: { 200: json(cassetteList, "One entry per tape") },
  }),
  guarded({
    method: "get",
    path: "/cassettes/{tape}",
    summary: "Describes a tape (operator only)",
    parameters: [tapeParameter],
    responses: { 200: json(cassetteDocument, "The tape") },
  }),
  guarded({
    method: "get",
    path: "/cassettes/{tape}/exchanges",
    summary: "Returns a tape as a file: a request and its answer per line (operator only)",
    parameters: [tapeParameter],
    responses: { 200: asText("The exchanges, in the order in which they were recorded", "application/x-ndjson") },
  }),
  guarded({
    method: "put",
    path: "/cassettes/{tape}",
    summary: "Replaces a tape by a file (operator only)",
    parameters: [tapeParameter],
    request: {
      body: {
        description: "An exchange per line; without a body, the tape is empty then",
        content: { "application/x-ndjson": { schema: { type: "string" } } },
      },
    },
    responses: { 200: json(cassetteDocument, "The tape as it is now") },
  }),
  guarded({
    method: "delete",
    path: "/cassettes/{tape}",
    summary: "Empties a tape (operator only)",
    parameters: [tapeParameter],
    responses: { 200: json(cassetteDocument, "The tape as it is now") },
  }),
];
