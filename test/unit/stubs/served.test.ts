/** The files in `stubs/` and what the gateway serves of them. */
import { readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { createApp } from "../../../src/http/app.ts";
import { STUB_FILES } from "../../../src/http/discovery/stub-files.mjs";

const STUBS = new URL("../../../stubs", import.meta.url).pathname;

/** What a screen shows without wrapping. */
const COLUMNS_MAX = 120;

const files = readdirSync(STUBS, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name: lang }) => ({ lang, inside: readdirSync(`${STUBS}/${lang}`).filter((file) => file !== "README.md") }));

it("serves the one file of each folder, under the folder's name, byte for byte", async () => {
  expect(STUB_FILES.map(({ lang, file }) => [lang, [file]]).toSorted()).toEqual(
    files.map(({ lang, inside }) => [lang, inside]).toSorted(),
  );
  for (const { lang, file } of STUB_FILES) {
    const answer = await createApp().request(`/stubs/${lang}`, {}, {});
    expect(await answer.text()).toBe(readFileSync(`${STUBS}/${lang}/${file}`, "utf8"));
    expect(answer.headers.get("content-disposition")).toBe(`inline; filename="${file}"`);
    expect(answer.headers.get("content-type")).toMatch(/^text\/[a-z-]+; charset=utf-8$/);
  }
});

it.each(STUB_FILES)("serves a stub for $lang whose lines fit on a screen", ({ text }) => {
  expect(text.split("\n").filter((line) => line.length > COLUMNS_MAX)).toEqual([]);
});

it("tests each stub in its language, but for those that stubs/README.md says were run by hand", () => {
  const readme = readFileSync(`${STUBS}/README.md`, "utf8");
  const tested = readdirSync(`${STUBS}/../test/stubs/languages`).map((file) => file.replace(".test.ts", ""));
  const untested = STUB_FILES.map(({ lang }) => lang).filter((lang) => !tested.includes(lang));
  // The types and the functions of workflow scripts have tests of their own.
  expect(untested.toSorted()).toEqual(["csharp", "julia", "script", "script-python", "typescript"]);
  for (const lang of ["csharp", "julia"]) expect(readme).toMatch(new RegExp(`\\| \`${lang}\` .*by hand`));
});
