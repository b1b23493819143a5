/** Each row of docs/security.md names a test that exists. */
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { ROOT } from "./page.ts";
import { rowsOf } from "./tables.ts";

it("names a test for every attack, by its file and its words", async () => {
  const rows = (await rowsOf("docs/security.md", "attack")).filter(([attack]) => !attack?.startsWith("**"));
  expect(rows.length).toBeGreaterThan(25);
  const missing: string[] = [];
  for (const [attack = "", , cell = ""] of rows) {
    const named = [...cell.matchAll(/`([^`]+)`(?: "([^"]+)")?/g)];
    if (named.length === 0) missing.push(`${attack}: no test is named`);
    for (const [, name = "", words = "no words of its title"] of named) {
      // The rules of all stubs are next to the tests that run them.
      const ends = ["test.ts", "ts"].map((end) => join(ROOT, "test", `${name}.${end}`));
      const file = ends.find((path) => existsSync(path));
      if (file === undefined || !(await readFile(file, "utf8")).includes(words))
        missing.push(`${attack}: ${name} ${words}`);
    }
  }
  expect(missing).toEqual([]);
});
