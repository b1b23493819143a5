import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BatchCheck, type BatchRules } from "../../../src/batch/check.ts";
import { IdSet } from "../../../src/batch/id-set.ts";
import {
  BATCH_EMBEDDING_INPUTS_MAX,
  BATCH_ERRORS_MAX,
  BATCH_FILE_BYTES_MAX,
  BATCH_LINES_MAX,
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
  it("is counted, and has the model that all its lines name", () => {
    expect(check(numbered(3)).finish()).toEqual({ ok: true, total: 3, model: MODEL, models: [MODEL] });
  });

  it("may mix models, and then has none", () => {
    const lines = [...numbered(2), makeLine({ custom_id: "b" }, { model: "other/model" })];
    expect(check(lines).finish()).toEqual({ ok: true, total: 3, model: null, models: [MODEL, "other/model"] });
  });

  it("gives each line back", () => {
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

  it("has the number of the line in the file, blank ones counted", () => {
    const check = new BatchCheck(makeRules());
    check.add({ number: 12, bytes: bytesOf("{") });
    expect(check.finish()).toMatchObject({ ok: false, errors: [{ line: 12 }] });
  });

  it("says a custom_id twice", () => {
    const ids = ["a", "b", "a", "A", "b"];
    const lines = ids.map((custom_id) => makeLine({ custom_id }));
    const message =
      "The custom_id for this request is a duplicate of another request. The custom_id parameter must be unique for each request in a batch.";
    expect(errorsOf(lines)).toEqual([
      { code: "duplicate_custom_id", param: "custom_id", line: 3, message },
      { code: "duplicate_custom_id", param: "custom_id", line: 5, message },
    ]);
  });

  it("mixes models although it is strict", () => {
    const lines = [...numbered(2), makeLine({ custom_id: "b" }, { model: "other/model" })];
    expect(errorsOf(lines, { strict: true })).toMatchObject([{ code: "model_mismatch", param: "body.model", line: 3 }]);
    expect(errorsOf(numbered(3), { strict: true })).toEqual([]);
  });

  it("holds no request", () => {
    expect(errorsOf([])).toEqual([
      {
        code: "empty_file",
        message: "The input file is empty. Please ensure that the batch contains at least one request.",
        param: null,
        line: null,
      },
    ]);
  });

  it("is larger than a batch's file may be, which is known before its first line", () => {
    expect(new BatchCheck(makeRules({ fileBytes: BATCH_FILE_BYTES_MAX })).isOver).toBe(false);
    const check = new BatchCheck(makeRules({ fileBytes: BATCH_FILE_BYTES_MAX + 1 }));
    expect(check.isOver).toBe(true);
    expect(check.finish()).toMatchObject({ ok: false, errors: [{ line: null, param: "file_id" }] });
  });

  it("has more requests than a batch may have", () => {
    const full = check(numbered(BATCH_LINES_MAX));
    expect(full.finish()).toMatchObject({ ok: true, total: BATCH_LINES_MAX });
    full.add({ number: BATCH_LINES_MAX + 1, bytes: bytesOf(makeLine({ custom_id: "one more" })) });
    expect(full.isOver).toBe(true);
    expect(full.finish()).toMatchObject({ ok: false, errors: [{ code: "too_many_tasks", line: null, param: null }] });
  });

  it("embeds more inputs in total than a batch may", () => {
    const url = "/v1/embeddings";
    const line = (custom_id: string, inputs: number) =>
      makeLine({ custom_id, url, body: { model: MODEL, input: Array.from({ length: inputs }, () => "x") } });
    const most = [line("a", BATCH_EMBEDDING_INPUTS_MAX - 1), line("b", 1)];
    expect(errorsOf(most, { url })).toEqual([]);
    expect(errorsOf([...most, line("c", 1)], { url })).toMatchObject([{ code: "too_many_tasks", line: null }]);
  });

  it("counts tokens given by number as the one input that they are", () => {
    const url = "/v1/embeddings";
    const check = new BatchCheck(makeRules({ url }));
    const input = Array.from({ length: BATCH_EMBEDDING_INPUTS_MAX + 1 }, () => 7);
    check.add({ number: 1, bytes: bytesOf(makeLine({ url, body: { model: MODEL, input } })) });
    expect(check.finish()).toMatchObject({ ok: true, total: 1 });
  });

  it("lists so many errors and no more, and need not be read on", () => {
    const wrong = Array.from({ length: BATCH_ERRORS_MAX }, () => "{");
    const nearly = check(wrong.slice(1));
    expect(nearly.isOver).toBe(false);
    const over = check([...wrong, "{", "{"]);
    expect(over.isOver).toBe(true);
    const verdict = over.finish();
    expect(verdict.ok ? [] : verdict.errors).toHaveLength(BATCH_ERRORS_MAX);
  });
});

/** Short and long ids, many of them alike. */
const ids = fc.oneof(
  fc.constantFrom("a", "b", ""),
  fc.string({ unit: "binary", maxLength: 80 }),
  fc.tuple(fc.constantFrom("x".repeat(63), "x".repeat(64), "y".repeat(64)), fc.constantFrom("", "a", "b")).map(String),
);

describe("custom_ids", () => {
  it("are new exactly when they were not there before", () => {
    fc.assert(
      fc.property(fc.array(ids, { maxLength: 50 }), (list) => {
        const set = new IdSet();
        const seen = new Set<string>();
        for (const id of list) {
          expect(set.add(id)).toBe(!seen.has(id));
          seen.add(id);
        }
      }),
    );
  });

  it("are told apart when they are long and differ in one place only", () => {
    const set = new IdSet();
    const long = "x".repeat(200);
    for (let at = 0; at < 200; at++) expect(set.add(`${long.slice(0, at)}y${long.slice(at + 1)}`)).toBe(true);
    for (let index = 0; index < 50_000; index++)
      if (!set.add(`${long}${index}`)) throw new Error(`${index} is not new`);
    expect(set.add(`${long}49999`)).toBe(false);
  });

  it("each come back exactly once from a file without duplicates", () => {
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
