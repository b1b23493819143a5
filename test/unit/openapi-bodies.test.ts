/** The bodies that the OpenAPI document describes are those that the gateway takes: an independent validator reads the document. */
import { Validator } from "@cfworker/json-schema";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { batchBody, parseBatch } from "../../src/contract/batch.ts";
import { DIALECT_BATCH, parseDialectQuery } from "../../src/contract/dialects/dialects.ts";
import { readBatch } from "../../src/contract/large-batch.ts";
import { parseQuery, queryBody } from "../../src/contract/query.ts";
import { openApiText } from "../../src/http/openapi/document.ts";
import type { Endpoint } from "../../src/call.ts";
import { CAP_SPELLINGS } from "../../src/providers/formats/request/request-fields.ts";
import { readRequest } from "../../src/providers/formats/request/read.ts";

const content = z.object({ "application/json": z.looseObject({ schema: z.record(z.string(), z.unknown()) }) });
const operation = z.looseObject({ requestBody: z.looseObject({ content }) });
const api = z
  .looseObject({ paths: z.record(z.string(), z.looseObject({})), components: z.unknown() })
  .parse(JSON.parse(openApiText()));

/** Whether a body fits the schema of `POST path`. */
function documentOf(path: string): (body: unknown) => boolean {
  const { requestBody } = operation.parse(api.paths[path]?.["post"]);
  const { schema } = requestBody.content["application/json"];
  const validator = new Validator({ ...schema, components: api.components }, "2020-12");
  return (body) => validator.validate(body).valid;
}

type Route = { name: string; path: string; takes: (body: unknown) => boolean };
const bytesOf = (value: unknown) => new TextEncoder().encode(JSON.stringify(value));
const readsAs = (endpoint: Endpoint) => (body: unknown) => readRequest(endpoint, bytesOf(body)).ok;

const QUERY: Route = { name: "a call", path: "/query", takes: (body) => parseQuery(body).ok };
const BATCH: Route = { name: "a batch", path: "/batch", takes: (body) => parseBatch(body).ok };
const ONE: Route = { name: "another system's call", path: "/llm_query", takes: (body) => parseDialectQuery(body).ok };
const LIST: Route = {
  name: "another system's list",
  path: "/llm_query_batched",
  takes: (body) => readBatch(bytesOf(body), DIALECT_BATCH).ok,
};

const talk = [{ role: "user", content: "p" }];

/** A value of each field that says what a request's calls are. */
const CONTENTS: Record<string, unknown> = {
  prompts: ["p"],
  items: [{ prompt: "p" }],
  over: { context: `ctx_${"0".repeat(32)}`, chunk: { chars: 100 } },
  prompt: "{{chunk}}",
  messages: talk,
  agents: ["m"],
  n: 2,
};

/** Objects with every choice of these fields. */
function choicesOf(fields: Record<string, unknown>): Record<string, unknown>[] {
  return Object.entries(fields).reduce<Record<string, unknown>[]>(
    (chosen, [name, value]) => chosen.flatMap((each) => [each, { ...each, [name]: value }]),
    [{}],
  );
}

describe("the contents of a request", () => {
  it.each([QUERY, BATCH, ONE, LIST])("are those that the document names together: $name", ({ path, takes }) => {
    const fits = documentOf(path);
    const all = choicesOf(path === "/query" ? { prompt: "p", messages: talk } : CONTENTS);
    // Null counts as missing where programs of other systems send it.
    const nulls = all.map((body) => ({
      ...Object.fromEntries(Object.keys(CONTENTS).map((name) => [name, null])),
      ...body,
    }));
    const bodies = path.startsWith("/llm") ? [...all, ...nulls] : all;
    expect(bodies.filter((body) => fits(body)).length).toBeGreaterThan(1);
    expect(bodies.filter((body) => fits(body) !== takes(body))).toEqual([]);
  });

  it("of stop_when are one rule, and flags of a regular expression only", () => {
    const fits = documentOf(BATCH.path);
    const rules = {
      n_success: 1,
      quorum: { of: 2 },
      regex: "x",
      judge: { prompt: "enough?" },
      flags: "i",
    };
    const bodies = choicesOf(rules).map((rule) => ({ prompts: ["p"], stop_when: rule }));
    expect(bodies.filter((body) => fits(body))).toHaveLength(5);
    expect(bodies.filter((body) => fits(body) !== BATCH.takes(body))).toEqual([]);
  });

  it("are one conversation of another system's call, not two", () => {
    const fits = documentOf(ONE.path);
    for (const [body, isTaken] of [
      [{ prompt: talk }, true],
      [{ messages: talk, prompt: null }, true],
      [{ prompt: talk, messages: talk }, false],
      [{ prompt: "", messages: talk }, false],
    ] as const) {
      expect([fits(body), ONE.takes(body)]).toEqual([isTaken, isTaken]);
    }
  });
});

describe("the type of a field", () => {
  const named = [
    ...Object.keys(queryBody().shape).flatMap((field) => [
      { ...QUERY, field, rest: { prompt: "p" }, nulls: false },
      { ...ONE, field, rest: { prompt: "p" }, nulls: true },
    ]),
    ...Object.keys(batchBody().shape).flatMap((field) => [
      { ...BATCH, field, rest: { prompts: ["p"] }, nulls: field === "error_style" },
      { ...LIST, field, rest: { prompts: ["p"] }, nulls: true },
    ]),
  ].filter(({ field }) => field !== "prompt" && field !== "prompts");

  // No field takes this number: it is below zero and between two integers.
  it.each(named)("is the document's: $field of $name", ({ path, takes, field, rest, nulls }) => {
    const fits = documentOf(path);
    for (const [value, isTaken] of [
      [-1.5, false],
      [null, nulls],
    ] as const) {
      const body = { ...rest, [field]: value };
      expect([fits(body), takes(body)]).toEqual([isTaken, isTaken]);
    }
  });

  const chat = { messages: talk };
  const relayed: [path: string, endpoint: Endpoint, rest: object][] = [
    ["/v1/chat/completions", "chat", chat],
    ["/v1/completions", "completions", { prompt: "p" }],
    ["/v1/messages", "messages", { ...chat, max_tokens: 5 }],
    ["/v1/messages/count_tokens", "messages", chat],
    ["/v1/responses", "responses", {}],
    ["/v1/embeddings", "embeddings", { input: "p" }],
  ];
  const READ = [
    "model",
    "stream",
    "stream_options",
    "n",
    "best_of",
    "tools",
    "system",
    "instructions",
    "cache_control",
  ];
  const VALUES = [-1.5, 0, "", "a", true, null, [], ["a"], [{}], {}, { include_usage: 1 }, { ttl: "5m" }];

  // What the gateway refuses itself; other values are the upstream's matter, which may refuse more.
  it.each(relayed)("of which the gateway refuses values is in the document: %s", (path, endpoint, rest) => {
    const [fits, takes] = [documentOf(path), readsAs(endpoint)];
    const bodies = [...READ, ...CAP_SPELLINGS, "prompt_cache_breakpoint"].flatMap((field) =>
      VALUES.map((value) => ({ ...rest, [field]: value })),
    );
    expect(bodies.filter((body) => !takes(body)).length).toBeGreaterThan(1);
    expect(bodies.filter((body) => !takes(body) && fits(body))).toEqual([]);
  });

  it("in params is the document's", () => {
    const fits = documentOf(QUERY.path);
    const names = [...READ, ...CAP_SPELLINGS, "temperature", "background", "messages", "prompt", "top_p", "seed"];
    const bodies = names.flatMap((name) => [...VALUES, 1].map((value) => ({ prompt: "p", params: { [name]: value } })));
    expect(bodies.filter((body) => fits(body) && !QUERY.takes(body))).toEqual([]);
    expect(fits({ prompt: "p", params: { n: 1, top_p: 0.5 } })).toBe(true);
  });
});
