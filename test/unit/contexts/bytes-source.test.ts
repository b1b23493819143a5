import { expect, it } from "vitest";
import { bytesSource } from "../../../src/http/contexts/store-context.ts";
import { CONTEXT_WRITE_BYTES } from "../../../src/limits.ts";

it("a text in memory is read in pieces, so that a large one is indexed in slices", async () => {
  for (const length of [0, 1, CONTEXT_WRITE_BYTES, 3 * CONTEXT_WRITE_BYTES + 1]) {
    const bytes = Uint8Array.from({ length }, (_, at) => at % 251);
    const source = bytesSource(bytes);
    const pieces: Uint8Array[] = [];
    for (let read = await source.read(); read.kind === "bytes"; read = await source.read()) pieces.push(read.bytes);
    expect(pieces.length).toBe(Math.ceil(length / CONTEXT_WRITE_BYTES));
    expect(Math.max(0, ...pieces.map((piece) => piece.length))).toBeLessThanOrEqual(CONTEXT_WRITE_BYTES);
    expect(Buffer.concat(pieces).equals(bytes)).toBe(true);
    expect((await source.read()).kind).toBe("end");
  }
});
