/** docs/release.md names commands that exist, the changelog begins with the version, and no workflow publishes. */
import { glob, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { z } from "zod";
import { VERSION } from "../../src/version.ts";
import { ROOT } from "./page.ts";

const textOf = (path: string): Promise<string> => readFile(join(ROOT, path), "utf8");
const manifest = z.object({ private: z.boolean(), scripts: z.record(z.string(), z.string()) });

it("names commands of package.json", async () => {
  const { scripts } = manifest.parse(JSON.parse(await textOf("package.json")));
  const named = [...(await textOf("docs/release.md")).matchAll(/npm run ([\w:-]+)/g)].map(([, name = ""]) => name);
  expect(named).toContain("pack:python");
  for (const name of named) expect(Object.keys(scripts)).toContain(name);
});

it("finds the present version at the head of the changelog", async () => {
  const [, newest] = /^## (\d+\.\d+\.\d+)/m.exec(await textOf("CHANGELOG.md")) ?? [];
  expect(newest).toBe(VERSION);
});

it("is the only way to publish: no step of CI does, and the clone's own package is private", async () => {
  for await (const file of glob([".github/workflows/*.yml", ".ci/*"], { cwd: ROOT })) {
    expect([file, /\bpublish\b|\btwine\b|\bupload\b/.test(await textOf(file))]).toEqual([file, false]);
  }
  expect(manifest.parse(JSON.parse(await textOf("package.json"))).private).toBe(true);
});
