import { describe, expect, it } from "vitest";
import { linesOf, textOfLine } from "../../../cli/text/lines.ts";

async function* cut(bytes: Buffer, piece: number) {
  for (let at = 0; at < bytes.length; at += piece) yield bytes.subarray(at, at + piece);
}

async function read(text: string | Buffer, { piece = 1000, bytesMax }: { piece?: number; bytesMax?: number } = {}) {
  const lines = [];
  for await (const line of linesOf(cut(Buffer.from(text), piece), bytesMax)) {
    lines.push([line.number, line.start, textOfLine(line)]);
  }
  return lines;
}

describe("linesOf", () => {
  it.each([
    [
      "a\nb",
      [
        [1, 0, "a"],
        [2, 2, "b"],
      ],
    ],
    [
      "a\r\nb\n",
      [
        [1, 0, "a"],
        [2, 3, "b"],
      ],
    ],
    ["\ufeffa\n", [[1, 3, "a"]]],
    [
      "a\n\n \t\r\nb\n",
      [
        [1, 0, "a"],
        [4, 7, "b"],
      ],
    ],
    ["a\u2028b\rc\n", [[1, 0, "a\u2028b\rc"]]],
    ["\n", []],
    ["", []],
  ])("reads %j", async (text, lines) => {
    expect(await read(text)).toEqual(lines);
  });

  it("reads the same however the bytes are cut", async () => {
    const text = "\ufeffone\r\n\nzwölf €\r\n  \nlast";
    const whole = await read(text);
    expect(whole.map(([number]) => number)).toEqual([1, 3, 5]);
    for (const piece of [1, 2, 3, 5]) expect(await read(text, { piece })).toEqual(whole);
  });

  it("takes a line of the longest length, and none that is longer", async () => {
    expect(await read("abcd\nabcd", { bytesMax: 4, piece: 3 })).toHaveLength(2);
    await expect(read("abcd\nabcde\n", { bytesMax: 4, piece: 3 })).rejects.toThrow("Line 2 is longer than 4 bytes.");
  });

  it("tells the last line, which may be cut off, from those with a line end", async () => {
    const ends = [];
    for await (const { isEnded } of linesOf([Buffer.from("a\nb\r\nc")])) ends.push(isEnded);
    expect(ends).toEqual([true, true, false]);
  });

  it("names the line that is not UTF-8", async () => {
    const latin1 = Buffer.concat([Buffer.from("good\n"), Buffer.from("schön", "latin1")]);
    await expect(read(latin1)).rejects.toThrow("Line 2 is not UTF-8 text.");
  });
});
