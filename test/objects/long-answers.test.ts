/** Answers longer than a row should be go on in rows of their own, and come back as they were. */
import { runInDurableObject } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import type { RunObject } from "../../src/index.ts";
import { TEXT_CHUNK_CHARS } from "../../src/limits.ts";
import { evict, openUnwatched } from "../support/objects-direct.ts";
import { rowCounts } from "../support/objects-group.ts";
import { openRun, type TestRun } from "../support/objects-run.ts";

/** Characters of two code units, four bytes each. */
const PAIR = "😀";

const TEXTS = [
  { what: "one less than a row takes", text: "a".repeat(TEXT_CHUNK_CHARS - 1), chunks: 0 },
  { what: "as many as a row takes", text: "a".repeat(TEXT_CHUNK_CHARS), chunks: 0 },
  { what: "one more than a row takes", text: "a".repeat(TEXT_CHUNK_CHARS + 1), chunks: 1 },
  { what: "three times what a row takes", text: numbered(3 * TEXT_CHUNK_CHARS), chunks: 2 },
  { what: "a pair on the border and nothing after it", text: "a".repeat(TEXT_CHUNK_CHARS - 1) + PAIR, chunks: 1 },
  { what: "a pair before the border", text: `${"a".repeat(TEXT_CHUNK_CHARS - 2)}${PAIR}b`, chunks: 1 },
  { what: "pairs on both of two borders", text: `a${PAIR.repeat(TEXT_CHUNK_CHARS)}`, chunks: 2 },
  { what: "characters of three bytes", text: "漢".repeat(630_000), chunks: 1 },
];

describe("an answer of", () => {
  it.each(TEXTS)("$what is returned identical, before and after a restart", async ({ text, chunks }) => {
    const run = await openRun({ max_parallel: 2 });
    await settleWith(run, ["short", text]);
    const read = async (): Promise<unknown[]> => [
      (await run.object.results(1, 0)).map((slot) => slot.text),
      (await run.object.endedSlots(1, null, 0))?.slots.map((slot) => slot.text),
      await overHttp(run),
    ];
    const before = await read();
    // The second of two that do not fit one reply is in the next; over HTTP both come.
    expect(before.map(String).map((all) => all.length)).toEqual(before.map(() => "short,".length + text.length));
    for (const texts of before) expect(isSame(texts, ["short", text])).toBe(true);
    await evict(run.object);
    for (const texts of await read()) expect(isSame(texts, ["short", text])).toBe(true);
    expect((await rowCounts(run))["chunk"]).toBe(chunks);
    expect(await largestText(run)).toBeLessThan(2_000_000);
  });
});

/** Opens a batch of one slot per text and settles it as a lane whose upstream gave these answers. */
async function settleWith(run: TestRun, texts: string[]): Promise<void> {
  await openUnwatched(
    run,
    texts.map((_, index) => `question ${index}`),
    "up/x",
  );
  const { jobs } = await run.object.settleAndClaim(0, [], 6, false);
  expect(jobs.length).toBe(texts.length);
  const settlements = jobs.map(({ lease: { attemptId } }, index) => {
    const usage = { promptTokens: 1, completionTokens: 1, cachedTokens: 0, reasoningTokens: 0, costNanoUsd: null };
    const answer = { text: texts[index] ?? "", model: "x", finishReason: "stop", usage, latencyMs: 1 };
    return { attemptId, outcome: { kind: "success" as const, ...answer } };
  });
  await run.object.settleAndClaim(0, settlements, 6, false);
}

async function overHttp(run: TestRun): Promise<unknown[]> {
  const view = await run.object.waitGroup(1, 0);
  const response = await run.send("GET", `/groups/${view?.id}`);
  return z.looseObject({ results: z.array(z.unknown()) }).parse(await response.json()).results;
}

/** Compared here: a difference of half a million characters would be printed. */
function isSame(texts: unknown, expected: string[]): boolean {
  return Array.isArray(texts) && texts.length === expected.length && expected.every((text, at) => texts[at] === text);
}

/** Bytes of the largest text in any row. */
function largestText(run: TestRun): Promise<number> {
  return runInDurableObject(run.object, (_: RunObject, { storage }) => {
    // A table is made with its first row: most answers need no chunk.
    const made = storage.sql.exec<{ name: string }>("SELECT name FROM sqlite_master").toArray();
    const tables = ["slot", "chunk"].filter((table) => made.some(({ name }) => name === table));
    const query = "SELECT max(length(CAST(text AS BLOB))) AS bytes FROM";
    return Math.max(...tables.map((table) => storage.sql.exec<{ bytes: number }>(`${query} ${table}`).one().bytes));
  });
}

/** Text of which no part is like another. */
function numbered(length: number): string {
  return Array.from({ length: Math.ceil(length / 8) }, (_, at) => String(at).padStart(8, "0"))
    .join("")
    .slice(0, length);
}
