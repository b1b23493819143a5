import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { firstMinuteOf, wrongWith } from "../../../scripts/first-minute-readme.ts";

const block = (...lines: string[]) => `\`\`\`sh\n${lines.join("\n")}\n\`\`\`\n`;
const ask = `curl $FANOUT_URL/batch -d '{"items":[{"prompt":"one"},{"prompt":"two","model":"sim/fail"},"three"]}'`;
const readme = (...section: string[]) =>
  ["# x\n", block("npm ci && npm run demo"), "## The first minute\n", ...section, "## Next\n", block(ask)].join("\n");

describe("firstMinuteOf", () => {
  it("takes what follows npm start, up to the batch, and knows its answers", () => {
    const text = readme(
      block("npm start   # ready"),
      "Then:\n",
      block("export A=1", "export B=2"),
      block(ask),
      block("later"),
    );
    expect(firstMinuteOf(text)).toEqual({
      paste: `export A=1\nexport B=2\n${ask}\n`,
      expected: ["one", null, "three"],
    });
  });

  it("reads a batch of plain prompts", () => {
    const paste = `curl $FANOUT_URL/batch -H 'x: y' -d '{"prompts":["one","two"]}'`;
    expect(firstMinuteOf(readme(block("npm start"), block(paste)))).toMatchObject({ expected: ["one", "two"] });
  });

  it("finds README.md's own", () => {
    const own = firstMinuteOf(readFileSync(join(import.meta.dirname, "../../../README.md"), "utf8"));
    expect(own).toEqual({
      paste: expect.stringContaining("/batch"),
      expected: expect.arrayContaining(["one", "three"]),
    });
  });

  it.each([
    ["# x\n", /no section/],
    [`## The first minute\n${block("npm start")}`, /`npm ci`/],
    [readme(block("npm run demo"), block(ask)), /does not contain `npm start`/],
    [readme(block(ask), block("npm start")), /does not send a batch after/],
    [readme(block("npm start"), block("curl $FANOUT_URL/batch -d @file")), /no body that can be parsed/],
  ])("says what is missing in %j", (text, message) => {
    expect(firstMinuteOf(text)).toMatch(message);
  });
});

describe("wrongWith", () => {
  const expected = ["one", null];

  it("accepts the promised answers, and an error where a call fails", () => {
    expect(wrongWith(`\n{"results":["one","[error] upstream answered 400"]}\n`, expected)).toBeNull();
  });

  it.each([
    `{"results":["one","two"]}`,
    `{"results":["two","[error] x"]}`,
    `{"results":["one"]}`,
    `{"results":["one","[error] x","three"]}`,
    `{"error":{}}`,
    "curl: (7) Failed to connect",
    "",
  ])("refuses %j, and shows it", (printed) => {
    expect(wrongWith(printed, expected)).toBe(`Expected the answers ["one",null], got: ${printed}`);
  });
});
