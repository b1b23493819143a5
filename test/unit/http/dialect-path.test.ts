import { describe, expect, it } from "vitest";
import { isDialectPath } from "../../../src/http/dialect-path.ts";

describe("a path of a dialect", () => {
  it.each([
    "/llm_query",
    "/rlm_query",
    "/llm_query_batch",
    "/llm_query_batched",
    "/rlm_query_batched",
    "/tool_call",
    "/rollout/:id/llm_query",
    "/rollout/anything",
  ])("%s is one: its refusals are a text", (path) => {
    expect(isDialectPath(path)).toBe(true);
  });

  it.each(["/query", "/batch", "/dag", "/runs", "/v1/chat/completions", "/v1/messages", "/"])(
    "%s is none: its refusals have a code",
    (path) => {
      expect(isDialectPath(path)).toBe(false);
    },
  );
});
