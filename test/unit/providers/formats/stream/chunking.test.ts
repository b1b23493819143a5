/** Where a stream's chunks end must not matter: to no byte that the client gets, and to nothing that is read. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { StreamObserverOptions } from "../../../../../src/providers/formats/stream/observer.ts";
import { bytesOf, play, recorded } from "./recorded.ts";

const error = 'data: {"error":{"message":"lost","code":7}}\n\n';
const torn = 'data: {"choices":[{"index":0,"delta":{"content":"';
const streams = {
  ...recorded,
  "chat, then an error": [...recorded.chat.slice(0, 4), error],
  "chat, torn": [...recorded.chat.slice(0, 4), torn],
};

const variants = Object.entries(streams).flatMap(([name, events]) =>
  ["\n", "\r\n", "\r"].flatMap((end) =>
    [undefined, 200].map((eventBytesMax) => ({
      name: `${name}, ${JSON.stringify(end)}, events up to ${eventBytesMax ?? "the bound"}`,
      bytes: bytesOf(events.join("").replaceAll("\n", end)),
      options: {
        family: name === "responses" || name === "messages" || name === "completions" ? name : "chat",
        usageChunk: "injected",
        ...(eventBytesMax === undefined ? {} : { eventBytesMax }),
      } as const,
    })),
  ),
);

function cutAt(bytes: Uint8Array, cuts: readonly number[]): Uint8Array[] {
  const borders = [0, ...cuts.toSorted((a, b) => a - b), bytes.length];
  return borders.slice(1).map((end, at) => bytes.subarray(borders[at], end));
}

/** All that comes of a stream, as text: comparing bytes one by one would take most of the time. */
function played(
  chunks: readonly Uint8Array[],
  options: Partial<StreamObserverOptions>,
  how: "clean" | "broken" = "clean",
) {
  const { sent, outcome } = play(chunks, options, how);
  return `${Buffer.from(sent).toString("latin1")}\n${JSON.stringify(outcome)}`;
}

describe.each(variants)("a stream of $name", ({ bytes, options }) => {
  const whole = played([bytes], options);

  it("is the same for every border of two chunks, and byte by byte", () => {
    for (let cut = 1; cut < bytes.length; cut++) expect(played(cutAt(bytes, [cut]), options)).toBe(whole);
    const each = Array.from(bytes, (byte) => new Uint8Array([byte]));
    expect(played(each, options)).toBe(whole);
  });

  it("is the same in any chunks, empty ones too", () => {
    const cuts = fc.array(fc.nat({ max: bytes.length }), { maxLength: 40 });
    fc.assert(
      fc.property(cuts, (at) => {
        expect(played(cutAt(bytes, at), options)).toBe(whole);
      }),
    );
  });

  it("is the same up to the byte at which it breaks", () => {
    fc.assert(
      fc.property(fc.nat({ max: bytes.length }), fc.nat({ max: bytes.length }), (end, cut) => {
        const begun = bytes.subarray(0, end);
        const once = played([begun], options, "broken");
        expect(played(cutAt(begun, [Math.min(cut, end)]), options, "broken")).toBe(once);
      }),
    );
  });
});

describe("any bytes", () => {
  const line = fc.constantFrom(
    "\n",
    "\r",
    "\r\n",
    "data: ",
    "data",
    "event: error",
    ": c",
    "{",
    "[DONE]",
    "🦊",
    "\uFEFF",
  );

  it("are unchanged until the stream ends, in any chunks", () => {
    fc.assert(
      fc.property(fc.array(line, { maxLength: 30 }), fc.array(fc.nat({ max: 60 })), (lines, at) => {
        const bytes = bytesOf(`${lines.join("")}\n\ndata: [DONE]\n\n`);
        const options = { eventBytesMax: 40 };
        const chunks = cutAt(
          bytes,
          at.map((cut) => Math.min(cut, bytes.length)),
        );
        expect(play(chunks, options).sent).toEqual(bytes);
      }),
    );
  });
});
