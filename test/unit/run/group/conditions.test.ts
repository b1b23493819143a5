/** Which gate stops an answer, and which answers none does. */
import { describe, expect, it } from "vitest";
import { GATES, type Cascade, type JsonGate, type Outcome } from "../../../../src/call.ts";
import { gateOf } from "../../../../src/run/group/conditions.ts";

const ALL: Cascade = { models: ["b"], on: GATES };
const success = (fields: Partial<Extract<Outcome, { kind: "success" }>>): Outcome => ({
  kind: "success",
  text: "fine",
  model: "a",
  finishReason: "stop",
  usage: null,
  latencyMs: 1,
  ...fields,
});
const failure = (reason: Extract<Outcome, { kind: "failure" }>["reason"]): Outcome => ({
  kind: "failure",
  class: "rejected",
  reason,
  answered: true,
  retryAfterMs: null,
  latencyMs: 1,
});
const upstream = { reason: "upstream_error", upstream: "up", status: 400, message: "no", retryable: false } as const;

describe("a gate", () => {
  it.each<[string, Outcome, string | null]>([
    ["lets an answer pass", success({}), null],
    ["stops an answer without text", success({ text: " \n" }), "empty"],
    ["stops an answer at its cap", success({ finishReason: "length" }), "length"],
    ["lets an answer pass that the budget has cut", success({ finishReason: "length", cappedBy: "budget" }), null],
    ["stops what a filter has stopped", success({ finishReason: "content_filter" }), "refusal"],
    ["stops what is marked as a refusal", success({ refused: true }), "refusal"],
    ["stops what does not fit its schema", failure({ reason: "schema_violation", message: "no" }), "schema_violation"],
    ["stops what a filter has refused", failure({ ...upstream, upstreamCode: "content_filter" }), "refusal"],
    ["lets another failure pass", failure(upstream), null],
  ])("%s", (_, outcome, expected) => {
    expect(gateOf(outcome, ALL)).toBe(expected);
    expect(gateOf(outcome, { ...ALL, on: GATES.filter((gate) => gate !== expected) })).toBeNull();
  });

  it.each<[string, Partial<JsonGate>, string | null]>([
    ['{"sure": 0.69}', {}, "json"],
    ['{"sure": 0.7}', {}, null],
    ['```json\n{"sure": 0.9}\n```', {}, null],
    ['{"sure": 0.7}', { operator: "<=" }, "json"],
    ['{"sure": 0.7}', { operator: ">" }, null],
    ['{"sure": 0.7}', { operator: ">=" }, "json"],
    ['{"sure": "yes"}', {}, "json"],
    ['{"sure": "yes"}', { operator: "==", value: "no" }, null],
    ['{"sure": "yes"}', { operator: "!=", value: "no" }, "json"],
    ['{"a": [{"sure": false}]}', { key: "a.0.sure", operator: "==", value: false }, "json"],
    ["{}", { operator: "==", value: 1 }, "json"],
    ["not JSON", {}, "json"],
  ])("on the JSON of %s with %o gives %s", (text, gate, expected) => {
    const json: JsonGate = { key: "sure", operator: "<", value: 0.7, ...gate };
    expect(gateOf(success({ text }), { models: ["b"], on: [], json })).toBe(expected);
  });
});
