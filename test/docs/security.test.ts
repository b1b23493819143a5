/** Each row of docs/security.md names a test that exists. */
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { ROOT } from "./page.ts";
import { codesIn, rowsOf } from "./tables.ts";

it("names a test for every attack, by its file and its words", async () => {
  const rows = (await rowsOf("docs/security.md", "attack")).filter(([attack]) => !attack?.startsWith("**"));
  expect(rows.length).toBeGreaterThan(25);
  const missing: string[] = [];
  for (const [attack = "", , cell = ""] of rows) {
    const [name = ""] = codesIn(cell);
    const words = /"([^"]+)"$/.exec(cell)?.[1] ?? "no test is named";
    // The rules of all stubs are next to the tests that run them.
    const file = ["test.ts", "ts"].map((end) => join(ROOT, "test", `${name}.${end}`)).find((path) => existsSync(path));
    if (file === undefined || !(await readFile(file, "utf8")).includes(words)) missing.push(`${attack}: ${cell}`);
  }
  expect(missing).toEqual([]);
});
