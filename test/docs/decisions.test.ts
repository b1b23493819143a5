/** Decisions are found by their number: each has one of its own, in its file's name, its title and the list. */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const FOLDER = fileURLToPath(new URL("../../decisions/", import.meta.url));
const files = readdirSync(FOLDER).filter((name) => /^\d{4}-.*\.md$/.test(name));

test("no two decisions have one number, and the list names each once, in its order", () => {
  const list = readFileSync(`${FOLDER}README.md`, "utf8");
  const listed = [...list.matchAll(/^\| \[(\d{4})\]\(([^)]*)\)/gm)].map(([, number, file]) => ({ number, file }));
  expect(listed).toEqual(files.toSorted().map((file) => ({ number: file.slice(0, 4), file })));
  expect(new Set(listed.map(({ number }) => number)).size).toBe(files.length);
});

test.for(files)("the title of %s begins with its number", (file) => {
  expect(readFileSync(FOLDER + file, "utf8")).toMatch(new RegExp(`^# ${file.slice(0, 4)} `));
});
