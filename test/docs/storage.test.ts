/** docs/storage.md names every table, column and settings key of every object, and no others. */
import { glob, readFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, it } from "vitest";
import { z } from "zod";
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

const migrations = z.object({ MIGRATIONS: z.array(z.object({ sql: z.string() })) });

/** The files that have statements of tables: they have all of a class, in order. */
async function migrationFiles(): Promise<string[]> {
  const files: string[] = [];
  for await (const file of glob("durable-objects/*/**/*.ts", { cwd: ROOT }))
    if (/(?:CREATE|ALTER|DROP) TABLE/.test(await readFile(join(ROOT, file), "utf8"))) files.push(file);
  return files;
}

/** The tables of new objects: what is left when all migrations of a class have run. */
async function created(): Promise<Tables> {
  const tables: Tables = {};
  for (const file of await migrationFiles()) {
    const loaded: unknown = await import(join(ROOT, file));
    const object = await objectOf(file);
    const database = new DatabaseSync(":memory:");
    for (const { sql } of migrations.parse(loaded).MIGRATIONS) database.exec(sql);
    const columns = database.prepare(
      "SELECT m.name AS name, c.name AS column FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type = 'table' ORDER BY m.name, c.cid",
    );
    for (const row of columns.all()) {
      const { name, column } = z.object({ name: z.string(), column: z.string() }).parse(row);
      if (name !== "sqlite_sequence") (tables[`${object}.${name}`] ??= []).push(column);
    }
    database.close();
  }
  return tables;
}

it("names every table with its columns", async () => {
  const tables = await created();
  expect(Object.keys(tables).length).toBeGreaterThan(20);
  expect(documented()).toEqual(tables);
});

it("names every key of a run's and a batch's settings", async () => {
  const meta = await readFile(join(ROOT, "durable-objects/run/store/meta.ts"), "utf8");
  const keys = [...meta.matchAll(/(?:key: |number\(|flag\(|baseline\()"(\w+)"/g)].map(([, key = ""]) => key);
  expect(keys).toContain("status");
  const row = /## `RunObject`.*?\| `meta` \| `key` `value` `more` \| ([^|]*)\|/s.exec(page)?.[1];
  // The version and the settings have one key.
  expect(codesIn(row).toSorted()).toEqual([...new Set(keys)].toSorted());
});

it("has an object for each class that is bound", async () => {
  const classes = [...(await readFile(join(ROOT, "wrangler.toml"), "utf8")).matchAll(/^[^#\n]*class_name = "(\w+)"/gm)];
  const headings = [...page.matchAll(/^## `(\w+Object)`/gm)].map(([, name]) => name);
  expect(headings.toSorted()).toEqual(classes.map(([, name]) => name).toSorted());
});
