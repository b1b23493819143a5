/** What a batch is refused for: at its creation with a 400, or, where its file is wrong, as a batch that has failed. */
import { toFile } from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { chatLine, runBatch, startBatchPlace, uploadLines, type BatchPlace, type BatchRun } from "./batch-place.ts";

let place: BatchPlace;
let run: BatchRun;
let input: string;
beforeAll(async () => {
  place = await startBatchPlace();
  run = await place.openRun();
  input = await uploadLines(run, [chatLine("a", "hi")]);
});
afterAll(() => place.stop());

const request = (fields: Record<string, unknown> = {}) => ({
  input_file_id: input,
  endpoint: "/v1/chat/completions",
  completion_window: "24h",
  ...fields,
});

describe("a request for a batch is refused", () => {
  const SUPPORTED = "'/v1/chat/completions', '/v1/completions', '/v1/embeddings', and '/v1/responses'";
  it.each([
    [
      { endpoint: "/v1/nope" },
      "endpoint",
      "invalid_value",
      `Invalid value: '/v1/nope'. Supported values are: ${SUPPORTED}.`,
    ],
    [{ endpoint: undefined }, "endpoint", "missing_required_parameter", "Missing required parameter: 'endpoint'."],
    [
      { input_file_id: undefined },
      "input_file_id",
      "missing_required_parameter",
      "Missing required parameter: 'input_file_id'.",
    ],
    [{ completion_window: "48h" }, "completion_window", "invalid_value", /completion_window/],
    [{ completion_window: "" }, "completion_window", "invalid_value", /completion_window/],
    [{ completion_window: undefined }, "completion_window", "missing_required_parameter", /completion_window/],
    [
      { metadata: { tags: ["a"] } },
      "metadata.tags",
      "invalid_type",
      "Invalid type for 'metadata.tags': expected a string, but got an array instead.",
    ],
    [
      { metadata: { ["k".repeat(65)]: "v" } },
      `metadata.${"k".repeat(65)}`,
      "property_name_above_max_length",
      /metadata/,
    ],
    [{ metadata: { k: "v".repeat(513) } }, "metadata.k", "string_above_max_length", /512/],
    [
      { metadata: Object.fromEntries(Array.from({ length: 17 }, (_, at) => [`k${at}`, "v"])) },
      "metadata",
      "object_above_max_properties",
      /at most 16/,
    ],
    [
      { output_expires_after: { anchor: "created_at", seconds: 3_599 } },
      "output_expires_after.seconds",
      "integer_below_min_value",
      /3600/,
    ],
    [
      { output_expires_after: { anchor: "created_at", seconds: 2_592_001 } },
      "output_expires_after.seconds",
      "integer_above_max_value",
      /2592000/,
    ],
    [
      { output_expires_after: { anchor: "now", seconds: 3_600 } },
      "output_expires_after.anchor",
      "invalid_value",
      /now/,
    ],
    [{ priority: 1 }, "priority", "unknown_parameter", "Unknown parameter: 'priority'."],
  ])("with %o", async (fields, param, code, message) => {
    const answer = await run.send("/v1/batches", { json: request(fields) });
    expect(answer.status).toBe(400);
    expect(answer.json).toMatchObject({
      error: {
        param,
        code,
        type: "invalid_request_error",
        message: typeof message === "string" ? message : expect.stringMatching(message),
      },
    });
    expect(answer.headers.get("x-should-retry")).toBe("false");
  });

  it("with a body that is not JSON; none of the refused requests creates a batch", async () => {
    const answer = await run.send("/v1/batches", {
      method: "POST",
      body: "{",
      headers: { "content-type": "application/json" },
    });
    expect(answer.status).toBe(400);
    expect((await run.openai.batches.list()).data).toEqual([]);
  });

  it("but not with values exactly at the bounds", async () => {
    const metadata = Object.fromEntries(
      Array.from({ length: 16 }, (_, at) => [`${at}`.padEnd(64, "k"), "v".repeat(512)]),
    );
    const own = await place.openRun();
    const id = await uploadLines(own, [chatLine("a", "hi")]);
    for (const seconds of [3_600, 2_592_000]) {
      const json = {
        ...request({ metadata, output_expires_after: { anchor: "created_at", seconds } }),
        input_file_id: id,
      };
      const answer = await own.send("/v1/batches", { json });
      expect([answer.status, answer.json]).toEqual([200, expect.objectContaining({ metadata })]);
    }
  });
});

describe("a batch fails before any request is sent", () => {
  const ok = chatLine("ok", "hi");
  const without = (field: string) => Object.fromEntries(Object.entries(ok).filter(([name]) => name !== field));
  const withBody = (fields: Record<string, unknown>) => ({
    ...ok,
    body: { model: "sim/echo", messages: [], ...fields },
  });
  const invalid = (param: string, message: string) => ({ code: "invalid_request", param, message });
  it.each<[string, unknown, Record<string, unknown>]>([
    [
      "no JSON",
      '{"custom_id":',
      { code: "invalid_json_line", param: null, message: "This line is not parseable as valid JSON." },
    ],
    ["no object", "[1]", { code: "invalid_json_line", param: null }],
    ...["custom_id", "method", "url", "body"].map((field): [string, unknown, Record<string, unknown>] => [
      `no ${field}`,
      without(field),
      { code: "missing_required_parameter", param: field, message: `Missing required parameter: '${field}'.` },
    ]),
    ["a custom_id twice", { ...ok, custom_id: "first" }, { code: "duplicate_custom_id", param: "custom_id" }],
    [
      "a custom_id that is too long",
      { ...ok, custom_id: "x".repeat(513) },
      { code: "string_above_max_length", param: "custom_id" },
    ],
    ["another URL", { ...ok, url: "/v1/embeddings" }, { code: "invalid_url", param: "url" }],
    ["another method", { ...ok, method: "GET" }, { code: "invalid_value", param: "method" }],
    ["an unknown model", withBody({ model: "nobody-has-this" }), { code: "model_not_found", param: "body.model" }],
    [
      "no messages",
      { ...ok, body: { model: "sim/echo" } },
      invalid("body.messages", "Messages parameter is required."),
    ],
    [
      "a stream",
      withBody({ stream: true, messages: [{ role: "user", content: "hi" }] }),
      { code: "streaming_unsupported", param: "body.stream" },
    ],
  ])("if a line has %s", async (_, line, error) => {
    const batch = await runBatch(run, [chatLine("first", "hi"), line]);
    expect(batch).toMatchObject({
      status: "failed",
      in_progress_at: null,
      completed_at: null,
      output_file_id: null,
      error_file_id: null,
      errors: { object: "list", data: [{ line: 2, ...error }] },
      request_counts: { completed: 0, failed: 0 },
    });
    expect(batch.failed_at).toBeGreaterThanOrEqual(batch.created_at);
  });

  it("if no model is named and no default exists", { tags: ["slow"] }, async () => {
    const own = await startBatchPlace(undefined, { vars: { DEFAULT_MODEL: "" } });
    const batch = await runBatch(await own.openRun(), [
      { ...ok, body: { messages: [{ role: "user", content: "hi" }] } },
    ]);
    await own.stop();
    expect(batch.errors?.data).toEqual([
      { code: "invalid_request", message: "Model parameter is required.", param: "body.model", line: 1 },
    ]);
  });

  it("and names every wrong line, up to a hundred, by its line number", async () => {
    const lines = ["", ...Array.from({ length: 101 }, (_, at) => ({ ...ok, custom_id: `c${at}`, url: "/v1/nope" }))];
    const { errors } = await runBatch(run, [chatLine("first", "hi"), ...lines]);
    expect(errors?.data?.map(({ line }) => line)).toEqual(Array.from({ length: 100 }, (_, at) => at + 3));
  });

  it("if the file does not exist, belongs to another run or has another purpose", async () => {
    const other = await place.openRun();
    const foreign = await uploadLines(other, [ok]);
    const evals = await run.openai.files.create({ file: await toFile(Buffer.from("{}")), purpose: "evals" });
    for (const input_file_id of ["file-nowhere", foreign, evals.id]) {
      const { id } = await run.openai.batches.create({
        input_file_id,
        endpoint: "/v1/chat/completions",
        completion_window: "24h",
      });
      await expect.poll(() => run.openai.batches.retrieve(id).then(({ status }) => status)).toBe("failed");
      const { errors } = await run.openai.batches.retrieve(id);
      expect(errors?.data).toMatchObject([{ code: "invalid_request", param: "file_id", line: null }]);
    }
  });

  it("if it is strict and names two models; otherwise both models are called", async () => {
    const lines = [chatLine("a", "hi", "sim/echo"), chatLine("b", "hi", "sim/slow?ms=1")];
    const strict = await runBatch(run, lines, { strict: true });
    expect(strict).toMatchObject({
      status: "failed",
      errors: { data: [{ code: "model_mismatch", param: "body.model", line: 2 }] },
    });
    const mixed = await runBatch(run, lines);
    expect(mixed).toMatchObject({
      status: "completed",
      model: null,
      request_counts: { total: 2, completed: 2, failed: 0 },
    });
    const single = await runBatch(run, lines.slice(0, 1), { strict: true });
    expect(single).toMatchObject({ status: "completed", model: "sim/echo" });
  });

  it("and costs nothing and sends nothing upstream", async () => {
    const own = await place.openRun();
    await runBatch(own, [chatLine("a", "hi", "up-1"), chatLine("a", "hi", "up-1")]);
    expect(place.upstream.counters.requests).toBe(0);
    expect(await own.send("/budget")).toMatchObject({ json: { calls: { spent: 0, reserved: 0 } } });
  });
});

describe("an upload is refused", () => {
  it.each([
    ["no JSON", "hello"],
    ["nothing", ""],
    ["a broken first line", '{"custom_id":\n{}'],
  ])("with purpose batch if it contains %s", async (_, text) => {
    const file = await toFile(Buffer.from(text), "x.txt");
    await expect(run.openai.files.create({ file, purpose: "batch" })).rejects.toMatchObject({
      status: 400,
      param: null,
      code: "invalid_request",
      message: "400 Invalid file format for Batch API. Must be .jsonl",
    });
  });

  it("if it is not UTF-8", async () => {
    const file = await toFile(Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d]), "x.jsonl");
    await expect(run.openai.files.create({ file, purpose: "batch" })).rejects.toMatchObject({
      status: 400,
      message: "400 Invalid file for Batch API. Must be utf-8 encoded",
    });
  });

  it("but not for errors inside its lines, its name, or its content under another purpose", async () => {
    const uploads = [
      [await toFile(Buffer.from('{"custom_id":"a"}'), "x.txt"), "batch"],
      [await toFile(Buffer.from("hello"), "x.jsonl"), "user_data"],
    ] as const;
    for (const [file, purpose] of uploads) {
      expect(await run.openai.files.create({ file, purpose })).toMatchObject({ status: "processed", purpose });
    }
  });
});
