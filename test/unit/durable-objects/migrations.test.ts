/**
 * Objects in use have run the migrations of their class: one that is edited afterwards would leave them with other tables than new ones.
 * So each landed one is here, by the hash of its text. A new one is added at the end of both lists; until 0.1.0 is released, its statements
 * may still be recorded anew.
 */
import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { MIGRATIONS as batch } from "../../../durable-objects/batch/migrations.ts";
import { MIGRATIONS as cassette } from "../../../durable-objects/cassette/migrations.ts";
import { MIGRATIONS as directory } from "../../../durable-objects/directory/migrations.ts";
import { MIGRATIONS as gate } from "../../../durable-objects/gate/migrations.ts";
import { MIGRATIONS as runFiles } from "../../../durable-objects/run-files/migrations.ts";
import { MIGRATIONS as run } from "../../../durable-objects/run/store/tables.ts";
import type { Migration } from "../../../durable-objects/schema-version.ts";
import { MIGRATIONS as upstream } from "../../../durable-objects/upstream/migrations.ts";

const CLASSES: Readonly<Record<string, readonly Migration[]>> = {
  run,
  gate,
  directory,
  upstream,
  cassette,
  batch,
  runFiles,
};

/** By class: version, table and the hash of the statement, in order. */
const LANDED: Readonly<Record<keyof typeof CLASSES, readonly string[]>> = {
  run: [
    "1 meta a0145aaf6b87b57e",
    "1 grp 65d9fde1d39d175a",
    "1 retried 8f2506b85a226e1e",
    "1 graph ced6a8b059c18851",
    "1 page c960927dc60cac31",
    "1 single 4cc8ebd4906c5a67",
    "1 slot 5287a53e15afbf63",
    "1 chunk 89267d76b73d74d2",
    "1 parts 2dbac20bf6b864ce",
    "1 capped 6984f0183fa5b6e1",
    "1 routed 014ca0ca2f4ff4ba",
    "1 checked abd664ed5d176c77",
    "1 course 095657042cd19532",
    "1 shard a0eda3b186730884",
    "1 provider a21d547f1026c0ac",
    "1 child ecc51e52670cacd5",
    "1 log bf169a56b14b9645",
    "1 named ade34247dbb42f8b",
    "1 keys f04da135af69aaea",
    "1 tape d2b7efaaa5e4424e",
    "1 space 11539ac9d7f4c635",
    "1 kept db06c14efd9f4b87",
    "2 slot 9f4d784ec0bead1f",
    "2 slot 0b54daf19d70a1f7",
    "2 capped cc482e768d970075",
    "2 capped 91e59f656288fb82",
    "2 routed 9ec5ecc46a42e083",
    "2 routed 995fd04e86a0130d",
    "2 checked 9f3f454d4b9615bf",
    "2 checked 8632f7269f598e97",
    "2 course 238b594d68a82948",
    "2 course dcef2fd4d174c619",
    "2 grp 1de35b2787997932",
    "2 single f8ddd9b312c83268",
    "3 grp 5412ccd45846e937",
    "3 single bb069e0789db589b",
    "3 grp 6f11bec3e033f9ff",
    "3 grp 3917970ec07f69b8",
    "4 meta b2957a9bf64fe909",
    "4 meta 86d73412af8e829e",
    "4 meta 0e2e0d197b32a0ec",
    "5 single 63e8918419da269a",
  ],
  gate: ["1 memory 4768b817e4d7982e", "1 metered f5c0e089258283a9", "1 unread bf8aa39e38ffdcbf"],
  directory: [
    "1 run 8296c195aff7d97f",
    "1 summary a0507a646c3e4300",
    "1 past ccf4dfda7093837e",
    "1 day dbc8d1200494993a",
    "2 lease 31c08922a884c99e",
    "3 run 0ee52013d280fd2f",
    "3 run 1bfadaf558d4043f",
    "3 summary 8e58cb9f01d98cb2",
    "3 summary 22f43628e7062289",
    "4 run da84049639dd74a2",
    "4 run e71aef14e7fc2281",
    "4 run 9a061c8b112920f7",
  ],
  upstream: ["1 template 6bf103865caabed4"],
  cassette: ["1 exchange 9f0520c1bb7da992", "1 had 823474d933d51d2a", "1 facts 0a9ed83485c67ece"],
  batch: ["1 meta a0145aaf6b87b57e", "1 chunk 474c7d031c58c0bc", "1 tail fe0efd6520d109be"],
  runFiles: [
    "1 file 8cb79431f16bf7b6",
    "1 file 32934b93ca7d9c04",
    "1 upload 1e0e3dd13d87aace",
    "1 upload 491a3d1de2d886fc",
    "1 part 1f61b0b92007d79c",
    "1 part 4cf8aaa52033ad93",
    "1 batch 866dcd9456230be0",
    "1 batch 0dc80a33f350efbd",
    "1 batch_bytes 219c6a3f2f021474",
    "1 context 3e2009630c69e80a",
  ],
};

function landedAs({ version, table, sql }: Migration): string {
  return `${version} ${table} ${createHash("sha256").update(sql).digest("hex").slice(0, 16)}`;
}

describe.each(Object.entries(CLASSES))("the migrations of the class %s", (name, migrations) => {
  it("are those that have landed, unchanged and in their order", () => {
    expect(migrations.map(landedAs)).toEqual(LANDED[name]);
  });

  it("begin at version 1, and go on by one version at a time", () => {
    const versions = [...new Set(migrations.map(({ version }) => version))];
    expect(versions).toEqual(versions.map((_, index) => index + 1));
    expect(migrations.map(({ version }) => version)).toEqual(
      migrations.map(({ version }) => version).toSorted((a, b) => a - b),
    );
  });

  it("make a table before they change it, and name the table of their statement", () => {
    const made = new Set<string>();
    for (const { table, sql } of migrations) {
      if (!made.has(table)) expect(sql).toMatch(new RegExp(`^CREATE TABLE ${table} \\(`));
      made.add(table);
      expect(sql).toMatch(new RegExp(`\\b${table}\\b`));
    }
  });
});

it("an edited statement is not the one that has landed", () => {
  const [first] = run;
  expect(landedAs({ ...first, sql: first.sql.replace("value TEXT NOT NULL", "value TEXT") })).not.toBe(landedAs(first));
});
