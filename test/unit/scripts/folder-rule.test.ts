import { expect, it } from "vitest";
import { crowdedFolders, FOLDER_FILES_MAX } from "../../../scripts/folder-rule.ts";

const files = (folder: string, count: number): string[] =>
  Array.from({ length: count }, (_, at) => `${folder}/file-${at}.ts`);

it("allows a folder as many files as the bound", () => {
  expect(crowdedFolders(files("src/engine", FOLDER_FILES_MAX))).toEqual([]);
});

it("names each folder that holds more, and how many it holds", () => {
  expect(crowdedFolders([...files("src/b", 21), ...files("src/a", 30), ...files("src/c", 3)])).toEqual([
    "src/a: 30 files, at most 20 are allowed; sort them into folders by subject",
    "src/b: 21 files, at most 20 are allowed; sort them into folders by subject",
  ]);
});

it("counts a sub-folder by itself", () => {
  expect(crowdedFolders([...files("src/a", 15), ...files("src/a/b", 15)])).toEqual([]);
});
