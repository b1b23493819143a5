/** The rows of test/contract/README.md for five systems: batches (S0), agents that recur (S1), a coordinator (S2), an agent runtime (S3), an orchestrator (S4). */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ROOT } from "./page.ts";

/** What a gateway must do for these systems. */
const ESSENTIAL = [
  ...[1, 2, 3, 4, 5, 6, 7, 8, 10, 11].map((number) => `S0.${number}`),
  ...[1, 2, 3, 4, 5, 6, 8, 9, 11, 12, 15, 16, 17, 18].map((number) => `S1.${number}`),
  ...[3, 4, 5, 7, 9, 10, 12, 13, 15, 16].map((number) => `S2.${number}`),
  ...[1, 2, 3, 5, 6, 7, 10, 11, 12, 13, 16, 17, 18, 19, 20, 21, 22, 23, 26, 27, 30, 32, 33, 34, 35].map(
    (number) => `S3.${number}`,
  ),
  ...[1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 13, 16].map((number) => `S4.${number}`),
];

type Row = { ids: string[]; proofs: string };

// Requirements that it does not meet are listed apart, without proofs.
const [met = ""] = readFileSync(join(ROOT, "test/contract/README.md"), "utf8").split("\nWhat such systems also have");
const rows: Row[] = met.split("\n").flatMap((line) => {
  const [, ids, , proofs] = line.split("|").map((cell) => cell.trim());
  return ids !== undefined && proofs !== undefined && /^S[0-4]\.\d/.test(ids) ? [{ ids: ids.split(", "), proofs }] : [];
});

it("name every essential requirement of the five systems", () => {
  const named = new Set(rows.flatMap(({ ids }) => ids));
  expect(ESSENTIAL.filter((id) => !named.has(id))).toEqual([]);
});

it.each(rows)("$ids name tests that exist, by words of their names", ({ proofs }) => {
  const proved = [...proofs.matchAll(/`([^`]+)`((?:,? "[^"]+")*)/g)];
  expect(proved.length).toBeGreaterThan(0);
  for (const [, name = "", quotes = ""] of proved) {
    const source = sourceOf(name);
    expect(source, name).not.toBeNull();
    for (const [, quoted = ""] of quotes.matchAll(/"([^"]+)"/g))
      for (const words of quoted.split("…")) expect(source?.includes(words.trim()), `${name}: ${words}`).toBe(true);
  }
});

it("name at least one test by words of its name in each row, not a file alone", () => {
  expect(rows.filter(({ proofs }) => !/`[^`]+` "[^"]+"/.test(proofs)).map(({ ids }) => ids)).toEqual([]);
});

/** What each example says of itself: a requirement, the file or function that meets it, the tests that assert it. */
const EXAMPLES = ["compiler", "coordinator", "orchestrator", "team"];

describe.each(EXAMPLES)("the requirements of examples/%s", (name) => {
  const [, table = ""] = readFileSync(join(ROOT, "examples", name, "README.md"), "utf8").split(
    /^(?=\| requirement \|)/m,
  );
  const [head = "", , ...lines] = table.split("\n").filter((line) => line.startsWith("|"));
  const cells = (line: string): string[] => line.split("|").map((cell) => cell.trim());

  it("are asserted by tests that exist, by words of their names", () => {
    const path = /`(test\/[^`]+)`/.exec(head)?.[1] ?? "";
    expect(lines.length).toBeGreaterThan(3);
    let before = "";
    for (const [, what = "", , proof = ""] of lines.map(cells)) {
      const own = /`(test\/[^`]+\.test\.ts)`/.exec(proof)?.[1];
      const quotes = [...proof.matchAll(/"([^"]+)"/g)].map(([, quoted = ""]) => quoted);
      const isSame = proof.startsWith("the same") && before !== "";
      expect(quotes.length > 0 || own !== undefined || isSame, what).toBe(true);
      const source = readFileSync(join(ROOT, own ?? path), "utf8");
      const titles = [...source.matchAll(/\bit\(\s*"([^"]+)"/g)].map(([, title = ""]) => title);
      for (const words of quotes)
        expect(
          titles.filter((title) => title.includes(words)),
          words,
        ).not.toEqual([]);
      before = proof;
    }
  });

  it("are met by functions that exist", () => {
    const all = readdirSync(join(ROOT, "examples", name)).filter((file) => file.endsWith(".py"));
    const source = all.map((file) => readFileSync(join(ROOT, "examples", name, file), "utf8")).join("\n");
    for (const [, , place = ""] of lines.map(cells)) {
      const named = [...place.matchAll(/`([^`]+)`/g)].map(([, each = ""]) => each);
      expect(named.length, place).toBeGreaterThan(0);
      for (const each of named) {
        const found = each.endsWith(".py") ? all.includes(each) : source.includes(`def ${each.split(".").at(-1)}(`);
        expect(found, each).toBe(true);
      }
    }
  });
});

/** The source of a test file, or "" for a folder of tests; null if there is none of that name. */
function sourceOf(name: string): string | null {
  const place = name.startsWith("test/")
    ? name
    : name.startsWith("examples/")
      ? `test/${name}`
      : `test/contract/${name}`;
  const path = join(ROOT, place);
  if (existsSync(`${path}.test.ts`)) return readFileSync(`${path}.test.ts`, "utf8");
  return existsSync(path) && statSync(path).isDirectory() ? "" : null;
}
