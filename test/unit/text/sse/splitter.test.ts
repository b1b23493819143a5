import { describe, expect, it } from "vitest";
import { EventSplitter, type StreamPiece } from "../../../../src/text/sse/splitter.ts";
import { bytesOf, joined, textOf } from "../../providers/formats/stream/recorded.ts";

const read = (pieces: readonly StreamPiece[]): [string, string][] =>
  pieces.map((piece) => [piece.kind, textOf([piece.bytes])]);

describe("EventSplitter", () => {
  it.each([
    ["LF", "\n"],
    ["CRLF", "\r\n"],
    ["CR", "\r"],
  ])("ends an event at a blank line that ends with %s", (_, end) => {
    const first = `: note${end}event: a${end}data: 1${end}data: 2${end}${end}`;
    const second = `data: 3${end}${end}`;
    expect(read(new EventSplitter().feed(bytesOf(first + second)))).toEqual([
      ["event", first],
      ["event", second],
    ]);
  });

  it("accepts different line ends in one event", () => {
    const text = "data: 1\r\ndata: 2\rdata: 3\n\r\n";
    expect(read(new EventSplitter().feed(bytesOf(text)))).toEqual([["event", text]]);
  });

  it("returns an event at the CR that ends it, and its LF when that arrives", () => {
    const splitter = new EventSplitter();
    expect(read(splitter.feed(bytesOf("data: 1\r\n\r")))).toEqual([["event", "data: 1\r\n\r"]]);
    expect(read(splitter.feed(bytesOf("\ndata: 2\r\n\r\n")))).toEqual([
      ["tail", "\n"],
      ["event", "data: 2\r\n\r\n"],
    ]);
  });

  it("reads a CRLF that a border cuts as one line end", () => {
    const splitter = new EventSplitter();
    expect(splitter.feed(bytesOf("data: 1\r"))).toEqual([]);
    expect(splitter.feed(bytesOf("\ndata: 2"))).toEqual([]);
    expect(read(splitter.feed(bytesOf("\n\n")))).toEqual([["event", "data: 1\r\ndata: 2\n\n"]]);
  });

  it("keeps an incomplete event, even if the memory of its chunks is reused", () => {
    const splitter = new EventSplitter();
    const pieces: StreamPiece[] = [];
    for (const byte of bytesOf("data: ü🦊\n\n")) {
      const chunk = new Uint8Array([byte]);
      pieces.push(...splitter.feed(chunk).map((piece) => ({ ...piece, bytes: piece.bytes.slice() })));
      chunk.fill(0);
    }
    expect(read(pieces)).toEqual([["event", "data: ü🦊\n\n"]]);
  });

  it("returns an incomplete event as the rest", () => {
    const splitter = new EventSplitter();
    splitter.feed(bytesOf("data: 1\n\ndata: 2\n"));
    const { bytes, isPartial } = splitter.rest();
    expect([textOf([bytes]), isPartial]).toEqual(["data: 2\n", false]);
  });

  it("returns an event of the largest size whole, and a larger one in parts", () => {
    const largest = "data: 34\n\n";
    expect(read(new EventSplitter(10).feed(bytesOf(largest)))).toEqual([["event", largest]]);
    const larger = "data: 345\n\n";
    expect(new EventSplitter(10).feed(bytesOf(larger))).toEqual([
      { kind: "part", bytes: bytesOf(larger), first: true, last: true },
    ]);
  });

  it("keeps no more of an event than its bound, and finds the next event", () => {
    const splitter = new EventSplitter(10);
    expect(splitter.feed(bytesOf("data: 3456"))).toEqual([]);
    expect(splitter.feed(bytesOf("7"))).toEqual([
      { kind: "part", bytes: bytesOf("data: 34567"), first: true, last: false },
    ]);
    expect(splitter.feed(bytesOf("89"))).toEqual([{ kind: "part", bytes: bytesOf("89"), first: false, last: false }]);
    expect(splitter.rest()).toEqual({ bytes: new Uint8Array(0), isPartial: true });
    expect(splitter.feed(bytesOf("\n\ndata: 1\n\n"))).toEqual([
      { kind: "part", bytes: bytesOf("\n\n"), first: false, last: true },
      { kind: "event", bytes: bytesOf("data: 1\n\n") },
    ]);
  });

  it("measures an event alike wherever its CRLF is cut", () => {
    const text = bytesOf("data: 3456\r\n\r\n");
    for (const bound of [11, 12, 13, 14]) {
      const kinds = Array.from({ length: text.length + 1 }, (_, cut) => {
        const splitter = new EventSplitter(bound);
        const pieces = [...splitter.feed(text.slice(0, cut)), ...splitter.feed(text.slice(cut))];
        expect(joined(pieces.map(({ bytes }) => bytes))).toEqual(text);
        return pieces[0]?.kind;
      });
      expect(new Set(kinds)).toEqual(new Set([bound < 13 ? "part" : "event"]));
    }
  });
});
