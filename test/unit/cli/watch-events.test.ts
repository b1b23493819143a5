import { describe, expect, it } from "vitest";
import { eventReader } from "../../../cli/watch/follow.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

describe("eventReader", () => {
  const stream = bytes(
    ': keep-alive\n\nid: 1\nevent: a\ndata: {"n":1}\n\n' +
      'id: 2\r\ndata: {"t":"é模🎈"}\r\n\r\n: x\r\rdata:no space\rdata\rdata:  two\r\rdata: cut off\n',
  );
  const events = ['{"n":1}', '{"t":"é模🎈"}', "no space\n\n two"];

  it("reads a stream in one piece: comments are skipped, an event cut off by the end never appears", () => {
    expect(eventReader()(stream)).toEqual(events);
  });

  it("gives the same events wherever two borders cut the bytes", () => {
    const wrong: [number, number][] = [];
    for (let first = 0; first <= stream.length; first++) {
      for (let second = first; second <= stream.length; second++) {
        const dataOf = eventReader();
        const pieces = [stream.slice(0, first), stream.slice(first, second), stream.slice(second)];
        const got = pieces.flatMap((piece) => dataOf(piece) ?? []);
        if (JSON.stringify(got) !== JSON.stringify(events)) wrong.push([first, second]);
      }
    }
    expect(wrong).toEqual([]);
  });

  it("gives the same events byte by byte", () => {
    const dataOf = eventReader();
    expect([...stream].flatMap((byte) => dataOf(Uint8Array.of(byte)) ?? [])).toEqual(events);
  });

  it("skips a byte order mark at the beginning", () => {
    expect(eventReader()(bytes("\ufeffdata: 1\n\n"))).toEqual(["1"]);
  });

  it("reads events up to the bound, and gives up for good on a longer one", () => {
    const dataOf = eventReader(100);
    expect(dataOf(bytes(`data: ${"x".repeat(90)}\n\n`))).toEqual(["x".repeat(90)]);
    expect(dataOf(bytes(`data: ${"x".repeat(60)}`))).toEqual([]);
    expect(dataOf(bytes("x".repeat(60)))).toBeNull();
    expect(dataOf(bytes("\n\ndata: 1\n\n"))).toBeNull();
  });
});
