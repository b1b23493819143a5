/** Routes that show the operator what all runs share. */
import type { RouteConfig } from "@hono/zod-openapi";
import { resumedUpstream, upstreamList } from "../contract/operator/upstreams.ts";
import { asText, guarded, idParameter, json } from "./parts.ts";

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
];
