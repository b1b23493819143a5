import { describe, expect, it } from "vitest";
import { parseBatchCreate } from "../../../src/batch/create.ts";
import { expiryOf } from "../../../src/batch/expires-after.ts";
import { FILE_EXPIRES_S_MAX, FILE_EXPIRES_S_MIN } from "../../../src/limits.ts";

const BODY = { input_file_id: "file-a", endpoint: "/v1/chat/completions", completion_window: "24h" };

function errorOf(fields: Record<string, unknown>) {
  const parsed = parseBatchCreate({ ...BODY, ...fields });
  if (parsed.ok) return null;
  const { status, error } = parsed.refusal;
  expect([status, error.type, error.retryable]).toEqual([400, "invalid_request_error", false]);
  return { message: error.message, param: error.param, code: error.code };
}

function valueOf(fields: Record<string, unknown> = {}) {
  const parsed = parseBatchCreate({ ...BODY, ...fields });
  if (!parsed.ok) throw new Error(parsed.refusal.error.message);
  return parsed.value;
}

describe("a request for a batch", () => {
  it("needs three fields", () => {
    expect(valueOf()).toEqual({
      inputFileId: "file-a",
      url: "/v1/chat/completions",
      metadata: null,
      outputExpiresAfterS: null,
      strict: false,
    });
  });

  it("takes metadata, the life of its outputs, and strictness", () => {
    const fields = {
      metadata: { run: "7", "": "" },
      output_expires_after: { anchor: "created_at", seconds: 7_200 },
      strict: true,
    };
    expect(valueOf(fields)).toMatchObject({
      metadata: { run: "7", "": "" },
      outputExpiresAfterS: 7_200,
      strict: true,
    });
  });

  it.each([
    [{ service_tier: "batch" }, true],
    [{ metadata: { fanout_service_tier: "batch" } }, true],
    [{ service_tier: "default", metadata: { fanout_service_tier: "batch" } }, undefined],
    [{ metadata: { fanout_service_tier: "default" } }, undefined],
    [{ service_tier: null }, undefined],
  ])("may want its provider's batches: %j", (fields, viaProvider) => {
    expect(valueOf(fields).viaProvider).toBe(viaProvider);
  });

  it("accepts null for optional fields", () => {
    expect(valueOf({ metadata: null, output_expires_after: null, strict: null })).toEqual(valueOf());
  });

  it.each(["/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses"])("accepts %s", (endpoint) => {
    expect(valueOf({ endpoint }).url).toBe(endpoint);
  });

  it("is accepted without its file: the batch fails for that", () => {
    expect(valueOf({ input_file_id: "" }).inputFileId).toBe("");
  });
});

describe("a request for a batch is refused in OpenAI's words", () => {
  it("for an unsupported endpoint", () => {
    expect(errorOf({ endpoint: "/v1/invalid/endpoint" })).toEqual({
      message:
        "Invalid value: '/v1/invalid/endpoint'. Supported values are: '/v1/chat/completions', '/v1/completions', '/v1/embeddings', and '/v1/responses'.",
      param: "endpoint",
      code: "invalid_value",
    });
  });

  it.each(["1h", "48h", "invalid", ""])("for the window %j", (completion_window) => {
    expect(errorOf({ completion_window })).toEqual({
      message: `Invalid value: '${completion_window}'. The only supported value for 'completion_window' is '24h'.`,
      param: "completion_window",
      code: "invalid_value",
    });
  });

  it.each(["input_file_id", "endpoint", "completion_window"])("for missing %s", (field) => {
    expect(errorOf({ [field]: undefined })).toEqual({
      message: `Missing required parameter: '${field}'.`,
      param: field,
      code: "missing_required_parameter",
    });
  });

  it.each([
    ["input_file_id", 7, "a string, but got an integer"],
    ["input_file_id", null, "a string, but got null"],
    ["endpoint", ["/v1/responses"], "a string, but got an array"],
    ["completion_window", 24.5, "a string, but got a decimal number"],
    ["metadata", ["a"], "an object, but got an array"],
    ["metadata", "a", "an object, but got a string"],
    ["output_expires_after", 3_600, "an object, but got an integer"],
    ["strict", "true", "a boolean, but got a string"],
  ])("for %s of a wrong type: %j", (field, value, text) => {
    expect(errorOf({ [field]: value })).toEqual({
      message: `Invalid type for '${field}': expected ${text} instead.`,
      param: field,
      code: "invalid_type",
    });
  });

  it.each([
    [["tag1", "tag2"], "an array"],
    [{}, "an object"],
    [7, "an integer"],
    [null, "null"],
  ])("for metadata that is no string: %j", (tags, name) => {
    expect(errorOf({ metadata: { fine: "x", tags } })).toEqual({
      message: `Invalid type for 'metadata.tags': expected a string, but got ${name} instead.`,
      param: "metadata.tags",
      code: "invalid_type",
    });
  });

  it("for more than 16 pairs of metadata", () => {
    const pairs = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, "v"]));
    expect(errorOf({ metadata: pairs(16) })).toBeNull();
    expect(errorOf({ metadata: pairs(17) })).toEqual({
      message:
        "Invalid 'metadata': too many properties. Expected an object with at most 16 properties, but got an object with 17 properties instead.",
      param: "metadata",
      code: "object_above_max_properties",
    });
  });

  it("for a key of more than 64 characters", () => {
    expect(errorOf({ metadata: { ["𝄞".repeat(64)]: "v" } })).toBeNull();
    expect(errorOf({ metadata: { ["k".repeat(65)]: "v" } })).toEqual({
      message: `Invalid property name in 'metadata': '${"k".repeat(64)}...' is too long. Expected a string with maximum length 64, but got a string with length 65 instead.`,
      param: `metadata.${"k".repeat(65)}`,
      code: "property_name_above_max_length",
    });
  });

  it("for a value of more than 512 characters", () => {
    expect(errorOf({ metadata: { k: "𝄞".repeat(512) } })).toBeNull();
    expect(errorOf({ metadata: { k: "v".repeat(513) } })).toEqual({
      message:
        "Invalid 'metadata.k': string too long. Expected a string with maximum length 512, but got a string with length 513 instead.",
      param: "metadata.k",
      code: "string_above_max_length",
    });
  });

  it("for a life of its outputs below an hour or above 30 days", () => {
    const asked = (seconds: unknown) => errorOf({ output_expires_after: { anchor: "created_at", seconds } });
    expect(asked(FILE_EXPIRES_S_MIN)).toBeNull();
    expect(asked(FILE_EXPIRES_S_MAX)).toBeNull();
    expect(asked(FILE_EXPIRES_S_MIN - 1)).toEqual({
      message:
        "Invalid 'output_expires_after.seconds': integer below minimum value. Expected a value >= 3600, but got 3599 instead.",
      param: "output_expires_after.seconds",
      code: "integer_below_min_value",
    });
    expect(asked(FILE_EXPIRES_S_MAX + 1)).toEqual({
      message:
        "Invalid 'output_expires_after.seconds': integer above maximum value. Expected a value <= 2592000, but got 2592001 instead.",
      param: "output_expires_after.seconds",
      code: "integer_above_max_value",
    });
    expect(asked("3600")).toMatchObject({ param: "output_expires_after.seconds", code: "invalid_type" });
    expect(asked(3_600.5)).toMatchObject({ param: "output_expires_after.seconds", code: "invalid_type" });
  });

  it("for an anchor other than created_at, and for a life without one", () => {
    expect(errorOf({ output_expires_after: { anchor: "last_used_at", seconds: 3_600 } })).toMatchObject({
      param: "output_expires_after.anchor",
      code: "invalid_value",
    });
    expect(errorOf({ output_expires_after: { seconds: 3_600 } })).toMatchObject({
      param: "output_expires_after.anchor",
      code: "missing_required_parameter",
    });
    expect(errorOf({ output_expires_after: { anchor: "created_at" } })).toMatchObject({
      param: "output_expires_after.seconds",
      code: "missing_required_parameter",
    });
  });

  it("for an unknown field", () => {
    expect(errorOf({ priority: "high" })).toEqual({
      message: "Unknown parameter: 'priority'.",
      param: "priority",
      code: "unknown_parameter",
    });
  });

  it.each([null, [], "text", 7])("for a body that is not an object: %j", (body) => {
    expect(parseBatchCreate(body)).toMatchObject({
      ok: false,
      refusal: { status: 400, error: { param: null, message: "Expected a JSON object as the body." } },
    });
  });
});

describe("a file expires", () => {
  it("after 30 days by default if it is a batch's input", () => {
    expect(expiryOf({ purpose: "batch", createdAtS: 1_787_176_071 }, null)).toBe(1_789_768_071);
  });

  it("never by default if it has another purpose", () => {
    expect(expiryOf({ purpose: "user_data", createdAtS: 100 }, null)).toBeNull();
    expect(expiryOf({ purpose: "batch_output", createdAtS: 100 }, null)).toBeNull();
  });

  it("at the requested time, counted from its creation", () => {
    expect(expiryOf({ purpose: "batch", createdAtS: 100 }, 3_600)).toBe(3_700);
    expect(expiryOf({ purpose: "batch_output", createdAtS: 100 }, 3_600)).toBe(3_700);
  });
});
