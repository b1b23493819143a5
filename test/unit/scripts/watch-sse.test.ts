import { describe, expect, it } from "vitest";
import { LineSplitter } from "../../../scripts/watch/lines.ts";
import { SseParser } from "../../../scripts/watch/sse.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

describe("SseParser", () => {
  const stream = bytes(
    ': keep-alive\n\nid: 1\nevent: a\ndata: {"n":1}\n\n' +
      'id: 2\r\ndata: {"t":"é模🎈"}\r\n\r\n: x\r\rdata:no space\rdata\rdata:  two\r\rdata: cut off\n',
  );
  const events = ['{"n":1}', '{"t":"é模🎈"}', "no space\n\n two"];

  it("reads a stream in one piece: comments are skipped, an event cut off by the end never appears", () => {
    expect(new SseParser().push(stream)).toEqual(events);
  });

  it("gives the same events wherever two borders cut the bytes", () => {
    const wrong: [number, number][] = [];
    for (let first = 0; first <= stream.length; first++) {
      for (let second = first; second <= stream.length; second++) {
        const parser = new SseParser();
        const pieces = [stream.slice(0, first), stream.slice(first, second), stream.slice(second)];
        const got = pieces.flatMap((piece) => parser.push(piece));
        if (JSON.stringify(got) !== JSON.stringify(events)) wrong.push([first, second]);
      }
    }
    expect(wrong).toEqual([]);
  });

  it("gives the same events byte by byte", () => {
    const parser = new SseParser();
    expect([...stream].flatMap((byte) => parser.push(Uint8Array.of(byte)))).toEqual(events);
  });

  it("skips a byte order mark at the beginning", () => {
    expect(new SseParser().push(bytes("\ufeffdata: 1\n\n"))).toEqual(["1"]);
  });
});

describe("LineSplitter", () => {
  it("keeps a line that has not ended for later", () => {
    const lines = new LineSplitter();
    expect(lines.push(bytes("one\ntw"))).toEqual(["one"]);
    expect(lines.rest()).toBe("tw");
    expect(lines.push(bytes("o\n"))).toEqual(["two"]);
    expect(lines.rest()).toBe("");
  });

  it("holds no more of an endless line than its bound", () => {
    const lines = new LineSplitter(5);
    expect(["abc", "def", "ghi"].flatMap((piece) => lines.push(bytes(piece)))).toEqual([]);
    expect(lines.push(bytes("\n12345\n"))).toEqual(["abcde", "12345"]);
  });
});
