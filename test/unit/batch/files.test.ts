import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  deletedDocument,
  FILE_PURPOSES,
  fileDocument,
  fileName,
  isExpired,
  noFile,
  parseFileForm,
  sizeRefusal,
} from "../../../src/batch/files.ts";
import { UploadCheck } from "../../../src/batch/upload-check.ts";
import { BATCH_FILE_BYTES_MAX, BATCH_LINE_BYTES_MAX, FILE_BYTES_MAX, NAME_CHARS_MAX } from "../../../src/limits.ts";

const encoder = new TextEncoder();

function form(fields: Record<string, string>) {
  const parsed = parseFileForm(new Map(Object.entries(fields)));
  return parsed.ok ? parsed.value : parsed.refusal.error;
}

describe("the document of a file", () => {
  const file = {
    id: "file-abc",
    bytes: 170,
    createdAtS: 1_787_176_071,
    expiresAtS: 1_789_768_071,
    filename: "x.jsonl",
    purpose: "batch" as const,
  };

  it("can be used at once", () => {
    expect(fileDocument(file)).toEqual({
      id: "file-abc",
      object: "file",
      bytes: 170,
      created_at: 1_787_176_071,
      expires_at: 1_789_768_071,
      filename: "x.jsonl",
      purpose: "batch",
      status: "processed",
      status_details: null,
    });
  });

  it("expires at its expiry, if it has one", () => {
    expect(isExpired(file, 1_789_768_070)).toBe(false);
    expect(isExpired(file, 1_789_768_071)).toBe(true);
    expect(isExpired({ expiresAtS: null }, Number.MAX_SAFE_INTEGER)).toBe(false);
  });

  it("is not found, with OpenAI's message", () => {
    expect(deletedDocument("file-abc")).toEqual({ id: "file-abc", object: "file", deleted: true });
    expect(noFile("file-x")).toEqual({
      status: 404,
      error: {
        message: "No such File object: file-x",
        type: "invalid_request_error",
        param: "id",
        code: "not_found",
        retryable: false,
      },
    });
  });
});

describe("the form of an upload", () => {
  it.each(FILE_PURPOSES)("may have the purpose %s", (purpose) => {
    expect(form({ purpose })).toEqual({ purpose, expiresAfterS: null });
  });

  it("requires a purpose that clients may use", () => {
    expect(form({})).toMatchObject({ code: "missing_required_parameter", param: "purpose" });
    for (const purpose of ["", "batch_output", "Batch"]) {
      expect(form({ purpose })).toMatchObject({
        code: "invalid_value",
        param: "purpose",
        message: `Invalid value: '${purpose}'. Supported values are: 'assistants', 'batch', 'fine-tune', 'vision', 'user_data', and 'evals'.`,
      });
    }
  });

  it("accepts an expiry from an hour to 30 days", () => {
    const asked = (seconds: string) =>
      form({ purpose: "batch", "expires_after[anchor]": "created_at", "expires_after[seconds]": seconds });
    expect(asked("3600")).toEqual({ purpose: "batch", expiresAfterS: 3_600 });
    expect(asked("2592000")).toEqual({ purpose: "batch", expiresAfterS: 2_592_000 });
    expect(asked("3599")).toMatchObject({ code: "integer_below_min_value", param: "expires_after.seconds" });
    expect(asked("2592001")).toMatchObject({ code: "integer_above_max_value", param: "expires_after.seconds" });
    for (const seconds of ["", "1e4", "4000.5", "an hour", "9".repeat(400)]) {
      expect(asked(seconds)).toMatchObject({ code: "invalid_type", param: "expires_after.seconds" });
    }
  });

  it("requires both fields of an expiry, or neither", () => {
    const anchor = { "expires_after[anchor]": "created_at" };
    expect(form({ purpose: "batch", ...anchor })).toMatchObject({ param: "expires_after.seconds" });
    expect(form({ purpose: "batch", "expires_after[seconds]": "3600" })).toMatchObject({
      param: "expires_after.anchor",
    });
    expect(
      form({ purpose: "batch", "expires_after[anchor]": "last_active_at", "expires_after[seconds]": "3600" }),
    ).toMatchObject({ code: "invalid_value", param: "expires_after.anchor" });
  });
});

describe("the size of a file", () => {
  it("is bounded, and more tightly for a batch's input", () => {
    expect(sizeRefusal(BATCH_FILE_BYTES_MAX, "batch")).toBeNull();
    expect(sizeRefusal(BATCH_FILE_BYTES_MAX + 1, "batch")).toMatchObject({
      status: 400,
      error: { message: "File is too large.", param: null, code: "invalid_request" },
    });
    expect(sizeRefusal(FILE_BYTES_MAX, "user_data")).toBeNull();
    expect(sizeRefusal(FILE_BYTES_MAX + 1, "user_data")).toMatchObject({ status: 400 });
  });
});

describe("the name of a file", () => {
  it.each(["unknown_file", "upload", "x.jsonl", "prompts.txt", "données 𝄞.json", "../a/b"])("may be %j", (name) => {
    expect(fileName(name)).toBe(name);
  });

  it("has a default for a file without one", () => {
    for (const name of [undefined, "", "  ", "\0\n"]) expect(fileName(name)).toBe("upload");
  });

  it("has no control characters, no lone surrogates, and a longest length", () => {
    expect(fileName('a\r\nb\u0085"c\0')).toBe('ab"c');
    expect(fileName("a\ud800")).toBe("a\ufffd");
    expect([...fileName("𝄞".repeat(NAME_CHARS_MAX + 1))]).toHaveLength(NAME_CHARS_MAX);
  });
});

function uploaded(bytes: Uint8Array, sizes: readonly number[] = []) {
  const check = new UploadCheck();
  let from = 0;
  for (const size of [...sizes, bytes.length]) {
    check.push(bytes.slice(from, from + size));
    from += size;
  }
  return check.finish()?.error.message ?? null;
}

const NOT_JSONL = "Invalid file format for Batch API. Must be .jsonl";
const NOT_UTF8 = "Invalid file for Batch API. Must be utf-8 encoded";

describe("a batch's input during its upload", () => {
  it.each([
    ["", NOT_JSONL],
    ["\n\r\n \n", NOT_JSONL],
    ["\ufeff", NOT_JSONL],
    ["prompt,answer\n{}", NOT_JSONL],
    ["{malformed json", NOT_JSONL],
    ['[\n{"custom_id":"a"}\n]', NOT_JSONL],
    ['{"custom_id":"a"}', null],
    ['\ufeff\n\r\n{"custom_id":"a"}\r\nnot json', null],
    ["{}\n{malformed", null],
  ])("%j is refused with %j", (text, message) => {
    expect(uploaded(encoder.encode(text))).toBe(message);
  });

  it("is refused if any of its bytes is not UTF-8", () => {
    const good = encoder.encode('{"a":"é"}\n{}\n');
    expect(uploaded(Uint8Array.of(...good, 0xff))).toBe(NOT_UTF8);
    expect(uploaded(Uint8Array.of(...good, 0xc3))).toBe(NOT_UTF8);
    expect(uploaded(Uint8Array.of(0xff, 0xfe, 0x7b, 0x00))).toBe(NOT_UTF8);
  });

  it("is accepted if its first line is too long to be checked: the batch refuses it", () => {
    expect(uploaded(new Uint8Array(BATCH_LINE_BYTES_MAX + 1).fill(0x7b))).toBeNull();
    expect(uploaded(new Uint8Array(BATCH_LINE_BYTES_MAX).fill(0x7b))).toBe(NOT_JSONL);
  });

  it("is refused in the same way for all chunk borders", () => {
    const texts = fc.array(fc.constantFrom("{}", "é", "𝄞", "\n", "\r", "x", "\ufeff"), { maxLength: 12 });
    fc.assert(
      fc.property(texts, fc.boolean(), fc.array(fc.nat({ max: 3 })), (parts, broken, sizes) => {
        const text = encoder.encode(parts.join(""));
        const bytes = broken ? Uint8Array.of(...text, 0xe2, 0x28) : text;
        expect(uploaded(bytes, sizes)).toBe(uploaded(bytes));
        expect(uploaded(bytes) === NOT_UTF8).toBe(broken);
      }),
    );
  });
});
