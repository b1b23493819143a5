import { describe, expect, it } from "vitest";
import { circles, roomsOf, unlisted, upwardImports } from "../../../scripts/floors.ts";

const MAP = [
  "| folder | what it holds, and what not |",
  "|---|---|",
  "| `src` | words |",
  "| `src/low` | numbers |",
  "| `src/high` | sums |",
  "| `test` | not part of the map |",
].join("\n");
const rooms = roomsOf(MAP);
const low = { path: "src/low/a.ts", source: "" };
const high = { path: "src/high/b.ts", source: 'import { a } from "../low/a.ts";' };

describe("the map of the code", () => {
  it("is read from the rows of folders, with their sentences", () => {
    expect(rooms).toEqual([
      { folder: "src", holds: "words" },
      { folder: "src/low", holds: "numbers" },
      { folder: "src/high", holds: "sums" },
    ]);
    expect(roomsOf("| `cli/low` | texts |\n| `bin` | not part of the map |")).toEqual([
      { folder: "cli/low", holds: "texts" },
    ]);
  });

  it("names a folder that it does not list, and a row without a folder", () => {
    expect(unlisted(rooms, [low.path, high.path])).toEqual([]);
    expect(unlisted(rooms, [low.path, "src/new/c.ts"])).toEqual([
      "src/new: the map does not list it",
      "src/high: the map lists it, but it has no file",
    ]);
    expect(unlisted(roomsOf(`${MAP}\n| \`src/low\` | again |`), [low.path, high.path])).toEqual([
      "src/low: the map lists it twice",
    ]);
  });

  it("refuses an import from a folder to one above it, types included", () => {
    expect(upwardImports(rooms, [low, high])).toEqual([]);
    const upward = { path: low.path, source: 'import type { B } from "../high/b.ts";' };
    expect(upwardImports(rooms, [upward, high])).toEqual([
      "src/low/a.ts: imports src/high/b.ts, but the map puts src/high above src/low",
    ]);
  });

  it("finds circles of files, and of files with folders", () => {
    const file = { path: "src/state.ts", source: 'import { b } from "./high/b.ts";' };
    expect(circles([low, high, file])).toEqual([]);
    const back = { path: "src/high/c.ts", source: 'import type { S } from "../state.ts";' };
    expect(circles([low, high, file, back])).toEqual(["a circle of imports: src/high → src/state.ts → src/high"]);
  });
});
