/** The rows of test/contract/README.md for five systems: batches (S0), agents that recur (S1), a coordinator (S2), an agent runtime (S3), an orchestrator (S4). */
import { existsSync, readdirSync, readFileSync } from "node:fs";
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

/** All that the five ask for; what a gateway need not do, or does not do, is named, too. */
const HIGHEST = [12, 18, 17, 36, 17];
const ALL = HIGHEST.flatMap((highest, system) => Array.from({ length: highest }, (_, at) => `S${system}.${at + 1}`));

/** What programs that are these systems need beside it: graphs, early stops, coordinator, teams, orchestrator, agents, examples. */
const PROGRAMS = Object.entries({ G: 5, E: 3, C: 6, T: 4, O: 4, A: 3, X: 5 }).flatMap(([letter, highest]) =>
  Array.from({ length: highest }, (_, at) => `${letter}${at + 1}`),
);

type Row = { ids: string[]; proofs: string };

// Requirements that it does not meet are listed apart, without proofs.
const README = readFileSync(join(ROOT, "test/contract/README.md"), "utf8");
const [met = "", unmet = ""] = README.split("\nWhat such systems also have");
const rows: Row[] = met.split("\n").flatMap((line) => {
  const [, ids, , proofs] = line.split("|").map((cell) => cell.trim());
  return ids !== undefined && proofs !== undefined && /^[A-Z]\d/.test(ids) ? [{ ids: ids.split(", "), proofs }] : [];
});
const named = new Set(rows.flatMap(({ ids }) => ids));

it("name every essential requirement of the five systems", () => {
  expect(ESSENTIAL.filter((id) => !named.has(id))).toEqual([]);
});

it("name every other requirement, too, as met or with what there is instead", () => {
  const instead = new Set(unmet.match(/\bS[0-4]\.\d+/g));
  expect([...ALL, ...PROGRAMS].filter((id) => !named.has(id) && !instead.has(id))).toEqual([]);
});

it.each(rows)("$ids name tests that exist, each by words of its title", ({ proofs }) => {
  const proved = [...proofs.matchAll(/`([^`]+)`((?:,? "[^"]+")*)/g)];
  expect(proved.length).toBeGreaterThan(0);
  for (const [, name = "", quotes = ""] of proved) {
    const titles = titlesOf(name);
    const quoted = [...quotes.matchAll(/"([^"]+)"/g)].map(([, words = ""]) => words);
    expect(quoted, name).not.toEqual([]);
    for (const words of quoted) expect(titles, `${name}: ${words}`).toSatisfy(hasTitle(words));
  }
});

it("would refuse a file that is not there, and words that are in no title of it", () => {
  expect(() => titlesOf("no-such-file")).toThrow("no-such-file");
  expect(hasTitle("prompt")(titlesOf("tiers"))).toBe(false);
  expect(hasTitle("barrier in a group")(titlesOf("tiers"))).toBe(true);
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

/** Whether one of the titles has these words; `…` stands for any. */
function hasTitle(words: string): (titles: readonly string[]) => boolean {
  const pieces = words.split("…").map((piece) => piece.trim());
  return (titles) => titles.some((title) => pieces.every((piece) => title.includes(piece)));
}

/** The titles in a test file, by its name in `test/contract`, or by its path from the root. Those of tables are not among them. */
function titlesOf(name: string): string[] {
  const place = name.startsWith("test/") ? name : `test/${name.startsWith("examples/") ? name : `contract/${name}`}`;
  const path = join(ROOT, `${place}.test.ts`);
  if (!existsSync(path)) throw new Error(`there is no test ${name}`);
  // As the formatter writes them: `it("…"`, `it.only("…"`, `it.each(rows)("…"`.
  const calls = readFileSync(path, "utf8").matchAll(/(?:\b(?:it|describe|test)(?:\.\w+)*|\))\(\s*(["`])(.*?)\1/gs);
  return [...calls].map(([, , title = ""]) => title);
}
