import { describe, expect, it } from "vitest";
import { csvLine, CsvParser } from "../../../cli/batch/input/csv.ts";

/** The records of a text that arrives in pieces of so many characters. */
function parse(text: string, piece = text.length || 1) {
  const parser = new CsvParser();
  const records = [];
  for (let at = 0; at < text.length; at += piece) records.push(...parser.push(text.slice(at, at + piece)));
  return [...records, ...parser.finish()].map(({ line, fields }: { line: number; fields: string[] }) => [
    line,
    ...fields,
  ]);
}

describe("CsvParser", () => {
  it.each([
    [
      "a,b\nc,d\n",
      [
        [1, "a", "b"],
        [2, "c", "d"],
      ],
    ],
    [
      "a\r\nb\rc",
      [
        [1, "a"],
        [2, "b"],
        [3, "c"],
      ],
    ],
    ['"x, y","say ""hi"""\n', [[1, "x, y", 'say "hi"']]],
    [
      '"one\ntwo\r\nthree",z\nlast',
      [
        [1, "one\ntwo\r\nthree", "z"],
        [4, "last"],
      ],
    ],
    ["a,,\n", [[1, "a", "", ""]]],
    ['""\n', [[1, ""]]],
    [
      "a\n\n\r\nb\n",
      [
        [1, "a"],
        [4, "b"],
      ],
    ],
    ['5" wide,x', [[1, '5" wide', "x"]]],
    ["", []],
  ])("reads %j", (text, records) => {
    expect(parse(text)).toEqual(records);
  });

  it("reads the same however the text is cut", () => {
    const text = 'a,"b ""q"" c",\r\n"one\ntwo",ü,"",x\r\n\r\nlast,"",1,2';
    const whole = parse(text);
    expect(whole).toHaveLength(3);
    for (const piece of [1, 2, 3, 5, 7]) expect(parse(text, piece)).toEqual(whole);
  });

  it("says in which line a quote opens that is never closed", () => {
    expect(() => parse('a\nb,"c\nd\n')).toThrow("The quote that opens in line 2 is never closed.");
  });

  it("refuses text behind a closing quote, which is a quote that was not doubled", () => {
    expect(() => parse('a\n"say "hi" now"\n')).toThrow(/^Line 2 has text after a closing quote/);
  });

  it("takes a field of the longest length, and none that is longer", () => {
    expect(new CsvParser(4).push("abcd\n")).toEqual([{ line: 1, fields: ["abcd"] }]);
    expect(() => new CsvParser(4).push("abcde\n")).toThrow(/more than 4 characters/);
    const parser = new CsvParser(4);
    parser.push('"abc');
    expect(() => parser.push("de")).toThrow(/more than 4 characters/);
  });
});

describe("csvLine", () => {
  it("writes what the parser reads back", () => {
    const fields = ["plain", "a,b", 'say "hi"', "two\nlines", "cr\r", "", " spaced "];
    expect(parse(csvLine(fields))).toEqual([[1, ...fields]]);
  });
});
