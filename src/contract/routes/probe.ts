/** Routes that measure a deployment, off unless PROBE=1. The reference does not list them. */
import { idParameter, json } from "./parts.ts";
import { family, OPERATOR } from "./record.ts";
import * as z from "zod";

const probe = {
  auth: OPERATOR,
  guide: "docs/probe.md" as const,
  replies: { 200: json(z.looseObject({}), "What it measured") },
};

export const probes = family(null, {
  "GET /_probe/hold": { ...probe, summary: "Answers after some time: what probes request" },
  "GET /_probe/:n": { ...probe, summary: "Measures the platform", parameters: [{ ...idParameter, name: "n" }] },
});
