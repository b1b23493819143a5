/** Routes that show the operator what all runs share. */
import { cassetteDocument, cassetteList } from "../operator/cassettes.ts";
import { overviewDocument, overviewQuery } from "../operator/overview.ts";
import { turnDocument } from "../operator/turn.ts";
import { resumedUpstream, upstreamList } from "../operator/upstreams.ts";
import { CASSETTE_BYTES_MAX } from "../../limits.ts";
import { asText, idParameter, json } from "./parts.ts";
import { OPERATOR, FIGURES, family } from "./record.ts";

const tapeParameter = { ...idParameter, name: "tape" };

export const operator = family("Upstreams", {
  "GET /metrics": {
    auth: FIGURES,
    guide: "docs/metrics.md",
    summary: "Shows what all runs have used, for Prometheus (operator only)",
    replies: { 200: asText("OpenMetrics 1.0", "application/openmetrics-text") },
  },
  "GET /overview": {
    auth: FIGURES,
    guide: "docs/runs.md",
    summary: "Shows what all root runs do now, and what they have used in the last hours (operator only)",
    request: { query: overviewQuery },
    replies: { 200: json(overviewDocument, "Sums over the runs, and by hour, model, name and code") },
  },
  "GET /upstreams": {
    auth: FIGURES,
    guide: "docs/upstreams.md",
    summary: "Shows the limits of each upstream's keys, and what waits for them (operator only)",
    replies: { 200: json(upstreamList, "One entry per key") },
  },
  "POST /upstreams/:name/resume": {
    auth: OPERATOR,
    guide: "docs/upstreams.md",
    opensNothing: true,
    summary:
      "Ends the stop of an upstream's keys at once, instead of with the next probe that succeeds (operator only)",
    parameters: [{ ...idParameter, name: "name" }],
    replies: { 200: json(resumedUpstream, "The keys as they are now") },
  },
  "POST /runs/:id/turn": {
    auth: OPERATOR,
    guide: "docs/runs.md",
    opensNothing: true,
    summary: "Makes a run do at once what its alarm would do, and says what it did (operator only)",
    parameters: [idParameter],
    replies: { 200: json(turnDocument, "The run before and after") },
  },
  "GET /cassettes": {
    auth: OPERATOR,
    guide: "docs/cassettes.md",
    summary: "Lists the tapes that upstreams of the kind cassette record and replay (operator only)",
    replies: { 200: json(cassetteList, "One entry per tape") },
  },
  "GET /cassettes/:tape": {
    auth: OPERATOR,
    guide: "docs/cassettes.md",
    summary: "Describes a tape (operator only)",
    parameters: [tapeParameter],
    replies: { 200: json(cassetteDocument, "The tape") },
  },
  "GET /cassettes/:tape/exchanges": {
    auth: OPERATOR,
    guide: "docs/cassettes.md",
    summary: "Returns a tape as a file: a request and its answer per line (operator only)",
    parameters: [tapeParameter],
    replies: { 200: asText("The exchanges, in the order in which they were recorded", "application/x-ndjson") },
  },
  "PUT /cassettes/:tape": {
    auth: OPERATOR,
    guide: "docs/cassettes.md",
    bound: CASSETTE_BYTES_MAX,
    summary: "Replaces a tape by a file (operator only)",
    parameters: [tapeParameter],
    request: {
      body: {
        description: "An exchange per line; without a body, the tape is empty then",
        content: { "application/x-ndjson": { schema: { type: "string" } } },
      },
    },
    replies: { 200: json(cassetteDocument, "The tape as it is now") },
  },
  "DELETE /cassettes/:tape": {
    auth: OPERATOR,
    guide: "docs/cassettes.md",
    summary: "Empties a tape (operator only)",
    parameters: [tapeParameter],
    replies: { 200: json(cassetteDocument, "The tape as it is now") },
  },
});
