import { describe, expect, it } from "vitest";
import { parseBatch } from "../../../src/contract/batch.ts";
import type { Parsed } from "../../../src/contract/errors.ts";
import { parseQuery } from "../../../src/contract/query.ts";
import { parseRun } from "../../../src/contract/runs.ts";

function message(parsed: Parsed<unknown>): string {
  return !parsed.ok && parsed.reason.reason === "invalid_request" ? parsed.reason.message : "";
}

const ofQuery = (name: string): string => message(parseQuery({ prompt: "x", [name]: 1 }));

describe("the refusal of an unknown field", () => {
  it.each([
    ["temprature", "temperature"],
    ["maxTokens", "max_tokens"],
    ["deadline", "deadline_ms"],
    ["promt", "prompt"],
  ])("suggests the known field that %s resembles", (name, known) => {
    expect(ofQuery(name)).toBe(`unknown field "${name}"; did you mean ${known}?`);
  });

  it("suggests the known field that the name begins with", () => {
    expect(message(parseRun({ budget_usd: 1 }))).toBe('unknown field "budget_usd"; did you mean budget?');
    expect(ofQuery("model_name")).toBe('unknown field "model_name"; did you mean model?');
  });

  it("says where definitions of tools go, which have the field of tools of the run in a chat completion", () => {
    expect(ofQuery("tools")).toMatch(
      /^tools: expected names of tools that the run has; put definitions .* in params: \{"params": \{"tools": …\}\}$/,
    );
  });

  it.each(["top_p", "seed", "response_format"])("suggests params for %s, which upstreams take", (name) => {
    expect(ofQuery(name)).toBe(`unknown field "${name}"; put it in params: {"params": {"${name}": …}}`);
  });

  it("gives the reason for a field that params do not take either", () => {
    expect(ofQuery("stream")).toBe(
      'unknown field "stream"; params does not take it either. The gateway reads one whole answer per attempt; a stream would not be understood.',
    );
    expect(ofQuery("max_completion_tokens")).toContain("send it as `max_tokens`");
  });

  it("refers other fields of a call to params", () => {
    expect(ofQuery("colour")).toBe('unknown field "colour"; fields for the upstream belong in params');
  });

  it("names the place inside a batch", () => {
    const items = [{ prompt: "a" }, { prompt: "b", top_p: 1 }];
    expect(message(parseBatch({ items }))).toContain('unknown field "items[1].top_p"; put it in params');
    expect(message(parseBatch({ prompts: ["a"], concurency: 2 }))).toContain("did you mean concurrency?");
  });

  it("lists the known fields of an object without params", () => {
    expect(message(parseRun({ budget: { dollars: 1 } }))).toBe(
      'unknown field "budget.dollars"; expected one of usd, calls, prompt_tokens, completion_tokens, new_tokens',
    );
  });
});
