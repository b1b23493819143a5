import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BatchCheck, type BatchRules } from "../../../src/batch/check.ts";
import {
  BATCH_EMBEDDING_INPUTS_MAX,
  BATCH_ERRORS_MAX,
  BATCH_FILE_BYTES_MAX,
  BATCH_LINES_MAX,
  CUSTOM_ID_CHARS_MAX,
  CUSTOM_IDS_CHARS_MAX,
} from "../../../src/limits.ts";
import { bytesOf, makeLine, makeRules, MODEL } from "./make.ts";

/** Checks lines, numbered from 1. */
function check(lines: readonly unknown[], rules: Partial<BatchRules> = {}) {
  const check = new BatchCheck(makeRules(rules));
  for (const [index, line] of lines.entries()) check.add({ number: index + 1, bytes: bytesOf(line) });
  return check;
}

function errorsOf(lines: readonly unknown[], rules: Partial<BatchRules> = {}) {
  const verdict = check(lines, rules).finish();
  return verdict.ok ? [] : verdict.errors;
}

const numbered = (count: number, body: Record<string, unknown> = {}) =>
  Array.from({ length: count }, (_, index) => makeLine({ custom_id: `id-${index}` }, body));

describe("a file that is valid", () => {
  it("is counted and has the model of all its lines", () => {
    expect(check(numbered(3)).finish()).toEqual({ ok: true, total: 3, model: MODEL, models: [MODEL] });
  });

  it("may mix models: then its model is null", () => {
    const lines = [...numbered(2), makeLine({ custom_id: "b" }, { model: "other/model" })];
    expect(check(lines).finish()).toEqual({ ok: true, total: 3, model: null, models: [MODEL, "other/model"] });
  });

  it("returns each line", () => {
    const check = new BatchCheck(makeRules());
    expect(check.add({ number: 1, bytes: bytesOf(makeLine()) })).toMatchObject({ customId: "a" });
    expect(check.total).toBe(1);
    expect(check.isOver).toBe(false);
  });
});

describe("a file that is refused", () => {
  it("reports each wrong line with its number", () => {
    const lines = ["{", "custom_id", "method", "url", "body"].map((field, index) =>
      field === "{" ? "{" : makeLine({ custom_id: `id-${index}`, [field]: undefined }),
    );
    expect(errorsOf([makeLine(), ...lines]).map(({ line, code, param }) => [line, code, param])).toEqual([
      [2, "invalid_json_line", null],
      [3, "missing_required_parameter", "custom_id"],
      [4, "missing_required_parameter", "method"],
      [5, "missing_required_parameter", "url"],
      [6, "missing_required_parameter", "body"],
    ]);
  });

  it("reports the line's number in the file, blank lines counted", () => {
    const check = new BatchCheck(makeRules());
    check.add({ number: 12, bytes: bytesOf("{") });
    expect(check.finish()).toMatchObject({ ok: false, errors: [{ line: 12 }] });
  });

  it("repeats a custom_id", () => {
    const ids = ["a", "b", "a", "A", "b"];
    const lines = ids.map((custom_id) => makeLine({ custom_id }));
    const message =
      "The custom_id for this request is a duplicate of another request. The custom_id parameter must be unique for each request in a batch.";
    expect(errorsOf(lines)).toEqual([
      { code: "duplicate_custom_id", param: "custom_id", line: 3, message },
      { code: "duplicate_custom_id", param: "custom_id", line: 5, message },
    ]);
  });

  it("mixes models in strict mode", () => {
    const lines = [...numbered(2), makeLine({ custom_id: "b" }, { model: "other/model" })];
    expect(errorsOf(lines, { strict: true })).toMatchObject([{ code: "model_mismatch", param: "body.model", line: 3 }]);
    expect(errorsOf(numbered(3), { strict: true })).toEqual([]);
  });

  it("has no request", () => {
    expect(errorsOf([])).toEqual([
      {
        code: "empty_file",
        message: "The input file is empty. Please ensure that the batch contains at least one request.",
        param: null,
        line: null,
      },
    ]);
  });

  it("is larger than the limit, which is known before its first line", () => {
    expect(new BatchCheck(makeRules({ fileBytes: BATCH_FILE_BYTES_MAX })).isOver).toBe(false);
    const check = new BatchCheck(makeRules({ fileBytes: BATCH_FILE_BYTES_MAX + 1 }));
    expect(check.isOver).toBe(true);
    expect(check.finish()).toMatchObject({ ok: false, errors: [{ line: null, param: "file_id" }] });
  });

  it("has more requests than the limit", { tags: ["slow"] }, () => {
    const full = check(numbered(BATCH_LINES_MAX));
    expect(full.finish()).toMatchObject({ ok: true, total: BATCH_LINES_MAX });
    full.add({ number: BATCH_LINES_MAX + 1, bytes: bytesOf(makeLine({ custom_id: "one more" })) });
    expect(full.isOver).toBe(true);
    expect(full.finish()).toMatchObject({ ok: false, errors: [{ code: "too_many_tasks", line: null, param: null }] });
  });

  it("embeds more inputs in total than the limit", () => {
    const url = "/v1/embeddings";
    const line = (custom_id: string, inputs: number) =>
      makeLine({ custom_id, url, body: { model: MODEL, input: Array.from({ length: inputs }, () => "x") } });
    const most = [line("a", BATCH_EMBEDDING_INPUTS_MAX - 1), line("b", 1)];
    expect(errorsOf(most, { url })).toEqual([]);
    expect(errorsOf([...most, line("c", 1)], { url })).toMatchObject([{ code: "too_many_tasks", line: null }]);
  });

  it("counts an array of token ids as one input", () => {
    const url = "/v1/embeddings";
    const check = new BatchCheck(makeRules({ url }));
    const input = Array.from({ length: BATCH_EMBEDDING_INPUTS_MAX + 1 }, () => 7);
    check.add({ number: 1, bytes: bytesOf(makeLine({ url, body: { model: MODEL, input } })) });
    expect(check.finish()).toMatchObject({ ok: true, total: 1 });
  });

  it("lists errors up to the limit, after which it need not be read further", () => {
    const wrong = Array.from({ length: BATCH_ERRORS_MAX }, () => "{");
    const nearly = check(wrong.slice(1));
    expect(nearly.isOver).toBe(false);
    const over = check([...wrong, "{", "{"]);
    expect(over.isOver).toBe(true);
    const verdict = over.finish();
    expect(verdict.ok ? [] : verdict.errors).toHaveLength(BATCH_ERRORS_MAX);
  });
});

describe("custom_ids", () => {
  it("are refused together above the number of characters that fit in memory", { tags: ["slow"] }, () => {
    const check = new BatchCheck(makeRules());
    const most = Math.floor(CUSTOM_IDS_CHARS_MAX / CUSTOM_ID_CHARS_MAX);
    const add = (index: number, chars: number) =>
      check.add({ number: index + 1, bytes: bytesOf(makeLine({ custom_id: `${index}`.padEnd(chars, "x") })) });
    for (let index = 0; index < most; index++)
      if (add(index, CUSTOM_ID_CHARS_MAX) === null) throw new Error(`${index}`);
    expect(check.isOver).toBe(false);
    expect(add(most, 6)).toBeNull();
    expect(check.finish()).toMatchObject({ ok: false, errors: [{ param: "custom_id", line: null }] });
  });

  it("are each returned once from a file without duplicates", { tags: ["slow"] }, () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.string({ unit: "binary", maxLength: 100 }), { maxLength: 30 }), (list) => {
        const check = new BatchCheck(makeRules());
        const back = list.map((custom_id, index) =>
          check.add({ number: index + 1, bytes: bytesOf(makeLine({ custom_id })) }),
        );
        expect(back.map((line) => line?.customId)).toEqual(list);
      }),
    );
  });
});
