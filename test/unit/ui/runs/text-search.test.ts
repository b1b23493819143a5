/** The search of the start page: what pages of it add up to, and what the reader is told of it. */
import { describe, expect, it } from "vitest";
import { noTextSearch, searchedText, withPage } from "../../../../ui/model/runs/text-search.ts";
import { callsFound, noCallSearch, searchedCallsText } from "../../../../ui/model/call-search.ts";

const page = (data: object[], search: object, cursor: string | null): Record<string, unknown> => ({
  data,
  search: { runs: 0, calls: 0, older: 0, in_part: [], unread_prompts: 0, ...search },
  has_more: cursor !== null,
  next_cursor: cursor,
});
const match = (where: string, group: string | null, excerpt: string): object => ({ where, group, index: 0, excerpt });

describe("the search in the texts of runs", () => {
  const first = page(
    [
      { id: "run_1", match: match("prompt", "grp_1", "a heron") },
      { id: "run_2", match: match("name", null, "herons") },
    ],
    { runs: 200, older: 800, in_part: ["run_9"], unread_prompts: 3 },
    "c",
  );
  const last = page([{ id: "run_3", match: match("name", "grp_2", "heron-1") }], { runs: 800 }, null);

  it("adds its pages up, with an excerpt where the row does not show the text itself", () => {
    const search = withPage(withPage(noTextSearch("heron"), first), last);
    expect([...search.found]).toEqual([
      ["run_1", { where: "prompt", excerpt: "a heron" }],
      ["run_2", null],
      ["run_3", { where: "name", excerpt: "heron-1" }],
    ]);
    expect([search.runs, search.inPart, search.unreadPrompts, search.cursor]).toEqual([1_000, 1, 3, null]);
  });

  it.each<[string, Record<string, unknown>, string]>([
    [
      "how many runs it has searched of how many",
      page([], { runs: 200, older: 800 }, "c"),
      "Prompts and answers of the newest 200 of 1,000 runs searched.",
    ],
    [
      "how many, if the list does not say of how many",
      page([], { runs: 200, older: null }, "c"),
      "Prompts and answers of the newest 200 runs searched.",
    ],
    ["that it has searched all", page([], { runs: 7 }, null), "Prompts and answers of all 7 runs searched."],
    [
      "what it has left out of those",
      page([], { runs: 7, in_part: ["run_1"], unread_prompts: 40 }, null),
      "Prompts and answers of all 7 runs searched, in 1 long run only the newest calls, without 40 prompts of large batches.",
    ],
  ])("says %s", (_, one, sentence) => {
    expect(searchedText(withPage(noTextSearch("x"), one))).toBe(sentence);
  });
});

describe("the search in the texts of one run", () => {
  it("adds its pages up, and says how far it has come", () => {
    const found = (group: string | null, index: number | null): object => ({ where: "answer", group, index });
    const first = callsFound(noCallSearch(), {
      data: [found("grp_1", 3), found(null, null)],
      calls: 10_000,
      unread_prompts: 0,
      has_more: true,
      next_cursor: "g.1.4",
    });
    expect([...first.found]).toEqual(["grp_1.3"]);
    expect(searchedCallsText(first)).toBe("Prompts and answers of the newest 10,000 calls searched.");
    const all = callsFound(first, { data: [found("grp_1", 9)], calls: 5, unread_prompts: 2, has_more: false });
    expect([...all.found]).toEqual(["grp_1.3", "grp_1.9"]);
    expect(searchedCallsText(all)).toBe(
      "Prompts and answers of all stored calls searched, without 2 prompts of a large batch.",
    );
  });
});
