import { describe, expect, it } from "vitest";
import type { GroupView, SlotView } from "../../../../src/objects/methods/groups.ts";
import type { Reason } from "../../../../src/errors.ts";
import { ANSWER_NOTES_CHARS_MAX } from "../../../../src/limits.ts";
import { reportText } from "../../../../src/http/replies/report.ts";
import { failedView, GROUP_ID, groupView, readerOf, slotView } from "./views.ts";

async function report(slots: readonly SlotView[], fields: Partial<GroupView> = {}): Promise<string> {
  const pieces: string[] = [];
  for await (const piece of reportText({ group: groupView(slots.length, fields), ...readerOf(slots) })) {
    pieces.push(piece);
  }
  return pieces.join("");
}

/** The cells of a table's row: the text between bars that are not escaped. */
function cellsOf(row: string): string[] {
  return row
    .split(/(?<!\\)\|/)
    .slice(1, -1)
    .map((cell) => cell.trim());
}

/** The rows of one of the report's tables, without its head. */
function rowsOf(text: string, heading: string): string[][] {
  const lines = text.split("\n");
  const head = lines.findIndex((line) => line.startsWith(heading));
  const end = lines.findIndex((line, at) => at > head + 1 && !line.startsWith("|"));
  return lines.slice(head + 2, end).map(cellsOf);
}

const agents = (text: string): string[][] => rowsOf(text, "| Agent | Status");
const failures = (text: string): string[][] => rowsOf(text, "| Agent | Error");

/** What the table shows of a model's output. */
async function finding(text: string): Promise<string> {
  const [row] = agents(await report([slotView({ text })]));
  expect(row).toHaveLength(4);
  return row?.[3] ?? "";
}

const DOWN: Reason = { reason: "upstream_error", upstream: "acme", status: 500, message: "no", retryable: true };

describe("a report", () => {
  it("names a tiny cost with its digits, and never as a power of ten", async () => {
    const usage = { promptTokens: 1, completionTokens: 0, costNanoUsd: 125 };
    expect(await report([slotView()], { usage })).toContain("| Cost | $0.000000125 |");
  });

  it("says of each agent what became of it and where its output is, and of the group what it took", async () => {
    const slots = [slotView({ text: "The answer is 42." }), slotView({ index: 1, id: "second", text: "" })];
    expect(await report(slots)).toBe(`# Group ${GROUP_ID}: completed

| Agent | Status | Output Location | Key Findings |
| --- | --- | --- | --- |
| 0 | COMPLETE | /groups/${GROUP_ID}/results?after=-1&limit=1 | The answer is 42. |
| second | COMPLETE | /groups/${GROUP_ID}/results?after=0&limit=1 |  |

## Metrics

| Metric | Value |
| --- | --- |
| Agents | 2 |
| Completed | 2 |
| Wall clock | 400 ms |
| Sequential | 500 ms |
| Speed-up | 1.25x |
| Peak parallel | 2 |
| Success rate | 1 |
| Cost | $0.000054 |
`);
  });

  it("reads all slots, however few come at a time, and stops where there are no more", async () => {
    const slots = Array.from({ length: 5 }, (_, index) => slotView({ index }));
    expect(agents(await report(slots)).map(([agent]) => agent)).toEqual(["0", "1", "2", "3", "4"]);
    expect(agents(await report(slots.slice(0, 3), { count: 9 }))).toHaveLength(3);
  });

  it("shows what has not ended as it is, without an output or an error", async () => {
    const slots = [
      slotView({ state: "queued", attempts: 0, text: null }),
      slotView({ index: 1, state: "running", text: null }),
    ];
    const text = await report(slots, { status: "running" });
    expect(agents(text)).toEqual([
      ["0", "QUEUED", "-", "-"],
      ["1", "RUNNING", "-", "-"],
    ]);
    expect(text).not.toContain("## Failed");
  });

  it("lists failures with what they mean and what to do: again, ask for more, or leave it", async () => {
    const budget = { dimension: "usd", limit: 1, spent: 1, reserved: 0, remaining: 0, needed: 1 } as const;
    const slots = [
      failedView(DOWN, { attempts: 3 }),
      failedView({ reason: "budget_exhausted", ...budget }, { index: 1, attempts: 0 }),
      failedView({ reason: "model_not_allowed", model: "m" }, { index: 2, attempts: 0 }),
      failedView({ reason: "schema_violation", message: "no" }, { index: 3, id: "named" }),
      failedView({ reason: "cancelled", message: "by the test" }, { index: 4, state: "cancelled", attempts: 0 }),
    ];
    const text = await report(slots);
    expect(agents(text).map(([, status, location, found]) => [status, location, found])).toEqual(
      Array.from({ length: 5 }, () => ["FAILED", "-", "-"]),
    );
    expect(failures(text).map(([agent, , impact, action]) => [agent, impact, action])).toEqual([
      ["0", "no output after 3 attempt(s)", "Retry"],
      ["1", "did not run, cost nothing", "Escalate"],
      ["2", "did not run, cost nothing", "Escalate"],
      ["named", "no output after 1 attempt(s)", "Skip"],
      ["4", "did not run, cost nothing", "Skip"],
    ]);
  });

  it("says so where nothing says why a slot failed", async () => {
    const text = await report([{ ...failedView(DOWN), reason: null }]);
    expect(failures(text)[0]?.[1]).toContain("internal");
  });
});

describe("what a model wrote, in a report", () => {
  it.each<[string, string, string]>([
    ["a heading", "# Done", "\\# Done"],
    ["a table's end", "a | b", "a \\| b"],
    ["an escaped bar", "a \\| b", "a \\\\\\| b"],
    ["a line break", "a\n\n# b\r\n| c |", "a \\# b \\| c \\|"],
    ["other line breaks", "a\u2028b\u2029c\u0085d\ve\ff", "a b c d e f"],
    ["a link", "[x](javascript:alert(1))", "\\[x\\]\\(javascript\\:alert\\(1\\)\\)"],
    ["an image", "![x](http://a.test/?q=1)", "\\!\\[x\\]\\(http\\://a.test/?q=1\\)"],
    ["an address that renderers link by themselves", "see www.a.test or b@a.test", "see www\\.a.test or b\\@a.test"],
    ["markup", '<img src=x onerror="alert(1)">', '&lt;img src=x onerror="alert\\(1\\)"\\>'],
    ["an entity", "&lt;script&gt;", "&amp;lt;script&amp;gt;"],
    ["a comment", "<!-- x -->", "&lt;\\!-- x --\\>"],
    ["code", "`x` ```", "\\`x\\` \\`\\`\\`"],
    ["stress", "*a* _b_ ~c~", "\\*a\\* \\_b\\_ \\~c\\~"],
    ["hidden and turned characters", "a\u202eb\u200bc\u0000d\u001b[31me", "a b c d \\[31me"],
    ["nothing but space", " \n\t ", ""],
  ])("stays text where it looks like %s", async (_, text, shown) => {
    expect(await finding(text)).toBe(shown);
  });

  it("is shown up to 160 characters, and not one more", async () => {
    expect(await finding("a".repeat(160))).toBe("a".repeat(160));
    expect(await finding("a".repeat(161))).toBe(`${"a".repeat(160)}…`);
    expect(await finding("a".repeat(1_000_000))).toBe(`${"a".repeat(160)}…`);
  });

  it("is cut between characters, never within one or within an escape", async () => {
    expect(await finding("😀".repeat(160))).toBe("😀".repeat(160));
    expect(await finding("😀".repeat(161))).toBe(`${"😀".repeat(160)}…`);
    expect(await finding(`a${"😀".repeat(400)}`)).toBe(`a${"😀".repeat(159)}…`);
    expect(await finding("|".repeat(161))).toBe(`${"\\|".repeat(160)}…`);
    expect(await finding("<".repeat(161))).toBe(`${"&lt;".repeat(160)}…`);
  });
});

describe("names and errors, in a report", () => {
  it("stay text too, wherever they are", async () => {
    const id = "x | <b>\n# y";
    const message = "| </table><script>\n\n## Owned";
    const text = await report([slotView({ id }), failedView({ ...DOWN, message }, { index: 1, id })]);
    const shown = "x \\| &lt;b\\> \\# y";
    expect(agents(text).map((cells) => [cells.length, cells[0]])).toEqual([
      [4, shown],
      [4, shown],
    ]);
    const [failure] = failures(text);
    expect(failure).toHaveLength(4);
    expect(failure?.[0]).toBe(shown);
    expect(text).not.toMatch(/<|^## Owned/m);
  });

  it("are cut where they are long", async () => {
    const [failure] = failures(await report([failedView({ ...DOWN, message: "m".repeat(5_000) })]));
    expect(failure?.[1]?.length).toBeLessThan(200);
  });
});

describe("a report of many failures", () => {
  it("lists each once, in order, without keeping them all in memory", async () => {
    const count = Math.ceil(ANSWER_NOTES_CHARS_MAX / 150);
    const slots = Array.from({ length: count }, (_, index) =>
      index % 7 === 0 ? slotView({ index }) : failedView({ ...DOWN, message: "z".repeat(150) }, { index }),
    );
    let reads = 0;
    const slotsFrom = (index: number) => {
      if (index === 0) reads += 1;
      return Promise.resolve(slots.slice(index, index + 1_000));
    };
    const pieces: string[] = [];
    for await (const piece of reportText({ group: groupView(count), slotsFrom })) pieces.push(piece);
    expect(reads).toBe(2);
    const failed = slots.filter(({ state }) => state === "failed").map(({ index }) => String(index));
    expect(failures(pieces.join("")).map(([agent]) => agent)).toEqual(failed);
    expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThan(1_000_000);
  });
});
