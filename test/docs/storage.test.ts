/** docs/storage.md names every table, column and settings key of every object, and no others. */
import { glob, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { ROOT } from "./page.ts";
import { codesIn } from "./tables.ts";

type Tables = Record<string, string[]>;

const page = await readFile(join(ROOT, "docs/storage.md"), "utf8");

/** The tables on the page by object: `RunObject.grp` → columns. */
function documented(): Tables {
  const tables: Tables = {};
  for (const section of page.split(/^## /m).slice(1)) {
    const [object = ""] = codesIn(section.split("\n")[0]);
    for (const [, name = "", columns = ""] of section.matchAll(/^\| `(\w+)` \| ((?:`\w+` ?)+)\|/gm)) {
      tables[`${object}.${name}`] = codesIn(columns);
    }
  }
  return tables;
}

/** The class whose object keeps its rows in a folder: of a file in it, or in a folder below. */
async function objectOf(file: string): Promise<string> {
  const [root = "", folder = ""] = file.split("/");
  const source = await readFile(join(ROOT, root, folder, "object.ts"), "utf8");
  return /^export class (\w+)/m.exec(source)?.[1] ?? folder;
}

/** The tables that the objects' sources create. */
async function created(): Promise<{ tables: Tables; statements: number }> {
  const tables: Tables = {};
  let statements = 0;
  for await (const file of glob("durable-objects/*/**/*.ts", { cwd: ROOT })) {
    const source = await readFile(join(ROOT, file), "utf8");
    const object = await objectOf(file);
    statements += source.split("CREATE TABLE").length - 1;
    for (const [, name = "", body = ""] of source.matchAll(
      /CREATE TABLE (?:IF NOT EXISTS )?(\w+) \(([^;]*?)\) STRICT/gs,
    )) {
      const columns = body
        .replace(/\([^)]*\)/g, "")
        .split(",")
        .map((column) => column.trim().split(/\s/)[0] ?? "");
      tables[`${object}.${name}`] = columns.filter((column) => column !== "PRIMARY");
    }
  }
  return { tables, statements };
}

it("names every table with its columns", async () => {
  const { tables, statements } = await created();
  // A statement in an unknown form would hide its table.
  expect(Object.keys(tables)).toHaveLength(statements);
  expect(documented()).toEqual(tables);
});

it("names every column that was added later", async () => {
  for await (const file of glob("durable-objects/*/**/*.ts", { cwd: ROOT })) {
    expect(await readFile(join(ROOT, file), "utf8"), file).not.toMatch(/ALTER TABLE/);
  }
});

it("names every key of a run's and a batch's settings", async () => {
  const meta = await readFile(join(ROOT, "durable-objects/run/store/meta.ts"), "utf8");
  const keys = [...meta.matchAll(/(?:key: |number\(|flag\(|baseline\()"(\w+)"/g)].map(([, key = ""]) => key);
  expect(keys).toContain("run");
  const row = /## `RunObject`.*?\| `meta` \| `key` `value` \| ([^|]*)\|/s.exec(page)?.[1];
  expect(codesIn(row).toSorted()).toEqual(keys.toSorted());
});

it("has an object for each class that is bound", async () => {
  const classes = [...(await readFile(join(ROOT, "wrangler.toml"), "utf8")).matchAll(/^[^#\n]*class_name = "(\w+)"/gm)];
  const headings = [...page.matchAll(/^## `(\w+Object)`/gm)].map(([, name]) => name);
  expect(headings.toSorted()).toEqual(classes.map(([, name]) => name).toSorted());
});
