import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { listPage, noSuchCursor, parseBatchesQuery, parseFilesQuery, type ListPage } from "../../../src/batch/pages.ts";
import { NAME_CHARS_MAX } from "../../../src/limits.ts";

const errorOf = (parsed: ReturnType<typeof parseFilesQuery> | ReturnType<typeof parseBatchesQuery>) =>
  parsed.ok ? null : { status: parsed.refusal.status, ...parsed.refusal.error };

describe("the query of a list of files", () => {
  it("is for all files, newest first, by default", () => {
    expect(parseFilesQuery({})).toEqual({
      ok: true,
      value: { limit: 10_000, after: null, order: "desc", purpose: null },
    });
  });

  it("accepts purpose, order, cursor and limit", () => {
    expect(parseFilesQuery({ limit: "2", after: "file-a", order: "asc", purpose: "batch" })).toEqual({
      ok: true,
      value: { limit: 2, after: "file-a", order: "asc", purpose: "batch" },
    });
  });

  it("accepts limits from 1 to 10000", () => {
    expect(parseFilesQuery({ limit: "1" }).ok).toBe(true);
    expect(parseFilesQuery({ limit: "10000" }).ok).toBe(true);
    expect(errorOf(parseFilesQuery({ limit: "0" }))).toMatchObject({
      status: 400,
      message: "Invalid 'limit': integer below minimum value. Expected a value >= 1, but got 0 instead.",
      param: "limit",
      code: "integer_below_min_value",
    });
    expect(errorOf(parseFilesQuery({ limit: "10001" }))).toMatchObject({ code: "integer_above_max_value" });
    for (const limit of ["", "ten", "1.5", "1e3", "9999999999"]) {
      expect(errorOf(parseFilesQuery({ limit }))).toMatchObject({ param: "limit", code: "invalid_type" });
    }
  });

  it("accepts two orders", () => {
    expect(errorOf(parseFilesQuery({ order: "newest" }))).toMatchObject({
      message: "Invalid value: 'newest'. Supported values are: 'asc' and 'desc'.",
      param: "order",
      code: "invalid_value",
    });
  });

  it("has a cursor of bounded length", () => {
    expect(parseFilesQuery({ after: "x".repeat(NAME_CHARS_MAX) }).ok).toBe(true);
    expect(errorOf(parseFilesQuery({ after: "x".repeat(NAME_CHARS_MAX + 1) }))).toMatchObject({ param: "after" });
    expect(parseFilesQuery({ after: "" })).toMatchObject({ ok: true, value: { after: null } });
    expect(noSuchCursor("file-x")).toMatchObject({ param: "after", code: "invalid_value" });
  });
});

describe("the query of a list of batches", () => {
  it("is for 20 by default, and accepts limits from 1 to 100", () => {
    expect(parseBatchesQuery({})).toEqual({ ok: true, value: { limit: 20, after: null } });
    expect(parseBatchesQuery({ limit: "100", after: "batch_1" })).toEqual({
      ok: true,
      value: { limit: 100, after: "batch_1" },
    });
    expect(errorOf(parseBatchesQuery({ limit: "0" }))).toMatchObject({ code: "integer_below_min_value" });
    expect(errorOf(parseBatchesQuery({ limit: "101" }))).toMatchObject({ code: "integer_above_max_value" });
  });
});

describe("a page", () => {
  const rows = (...ids: string[]) => ids.map((id) => ({ id }));

  it("names its first and last item, and whether there are more", () => {
    expect(listPage(rows("c", "b", "a"), 2)).toEqual({
      object: "list",
      data: rows("c", "b"),
      first_id: "c",
      last_id: "b",
      has_more: true,
    });
    expect(listPage(rows("b", "a"), 2)).toMatchObject({ first_id: "b", last_id: "a", has_more: false });
  });

  it("may be empty", () => {
    expect(listPage([], 20)).toEqual({ object: "list", data: [], first_id: null, last_id: null, has_more: false });
  });

  it("leads to the next by the id of its last item, so that each item is listed once, in order", () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.string()), fc.integer({ min: 1, max: 9 }), (ids, limit) => {
        const all = ids.map((id) => ({ id }));
        const seen: string[] = [];
        let after: string | null = null;
        for (let asked = 0; asked <= ids.length; asked++) {
          const from: number = after === null ? 0 : ids.indexOf(after) + 1;
          // A store's answer: one row more than the page.
          const page: ListPage<{ id: string }> = listPage(all.slice(from, from + limit + 1), limit);
          seen.push(...page.data.map(({ id }) => id));
          if (!page.has_more) break;
          after = page.last_id;
        }
        expect(seen).toEqual(ids);
      }),
    );
  });
});
