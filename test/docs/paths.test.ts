/** The paths and commands that AGENTS.md and CONTRIBUTING.md name exist, and their layout lists every folder. */
import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { roomsOf, unlisted } from "../../scripts/floors.ts";
import { ROOT } from "./page.ts";
import { codesIn } from "./tables.ts";

const TOP = /^(?:src|durable-objects|test|docs|decisions|scripts|bin|cli|bench|stubs|examples|\.ci)(?:\/|$)/;
/** Files of the root that pages name. */
const ROOT_FILE = /^[\w-]+(?:\.[\w-]+)*\.(?:md|json|toml|ts)$/;

/** The paths between backticks. A part in angle brackets or with a star stands for any name. */
function pathsIn(text: string): string[] {
  const prose = text.replace(/^```.*?^```$/gms, "");
  const words = codesIn(prose).flatMap((code) => code.split(/\s+/));
  return words.filter((word) => TOP.test(word) || ROOT_FILE.test(word)).map((word) => word.replace(/\/?[<*].*$/, ""));
}

describe.each(["AGENTS.md", "CONTRIBUTING.md"])("%s", (page) => {
  it("names only files and folders that exist", async () => {
    const paths = pathsIn(await readFile(join(ROOT, page), "utf8"));
    expect(paths.length).toBeGreaterThan(10);
    expect(paths.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  });

  it("names only commands that package.json has", async () => {
    const { scripts } = z
      .looseObject({ scripts: z.record(z.string(), z.string()) })
      .parse(JSON.parse(await readFile(join(ROOT, "package.json"), "utf8")));
    const text = await readFile(join(ROOT, page), "utf8");
    const named = [...text.matchAll(/npm run (?:-s )?([\w:-]+)/g)].map(([, name = ""]) => name);
    expect(named.length).toBeGreaterThan(2);
    expect(named.filter((name) => scripts[name] === undefined)).toEqual([]);
  });
});

it("gives every folder of the Worker, of the objects and of the command one row in the map of CONTRIBUTING.md, and no other", async () => {
  const rooms = roomsOf(await readFile(join(ROOT, "CONTRIBUTING.md"), "utf8"));
  const files = await Promise.all(
    ["src", "durable-objects", "cli"].map(async (top) => {
      const entries = await readdir(join(ROOT, top), { recursive: true, withFileTypes: true });
      return entries
        .filter((entry) => entry.isFile())
        .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)));
    }),
  );
  expect(rooms.length).toBeGreaterThan(50);
  expect(unlisted(rooms, files.flat())).toEqual([]);
  expect(rooms.filter(({ holds }) => holds.length < 10)).toEqual([]);
});
