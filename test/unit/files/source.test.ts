/** Sources of bytes: streams, and one source after another. */
import { describe, expect, it } from "vitest";
import { chainSources, streamSource } from "../../../src/files/source.ts";
import { bytesOf, readAll, sourceOf, streamOf } from "../../support/forms.ts";

const END = { kind: "end" };

describe("a stream's source", () => {
  it("returns the bytes of either kind of stream, without empty chunks, and then its end at every read", async () => {
    const plain = streamOf(bytesOf("abc"), [0, 2, 0, 1]);
    const ofBytes = new Response(bytesOf("abc")).body;
    if (ofBytes === null) throw new Error("the answer has a body");
    for (const stream of [plain, ofBytes]) {
      const source = streamSource(stream, "broken");
      expect(await readAll(source)).toEqual({ bytes: bytesOf("abc"), fault: null });
      expect(await source.read()).toEqual(END);
    }
  });

  it("returns the given fault of a stream that errors at every read", async () => {
    const source = streamSource(new ReadableStream({ pull: (controller) => controller.error("gone") }), "it broke");
    const fault = { kind: "fault", reason: { reason: "invalid_request", message: "it broke", param: null } };
    expect(await source.read()).toEqual(fault);
    expect(await source.read()).toEqual(fault);
    await source.cancel();
    expect(await source.read()).toEqual(fault);
  });

  it("cancels the stream, and has ended then", async () => {
    let isCancelled = false;
    const source = streamSource(
      new ReadableStream({
        pull: (controller) => controller.enqueue(bytesOf("x")),
        cancel: () => void (isCancelled = true),
      }),
      "broken",
    );
    expect(await source.read()).toEqual({ kind: "bytes", bytes: bytesOf("x") });
    await source.cancel();
    expect(isCancelled).toBe(true);
    expect(await source.read()).toEqual(END);
  });
});

describe("a chain of sources", () => {
  it("returns one after the other and opens each when the one before has ended", async () => {
    const opened: string[] = [];
    const opening = (text: string) => async () => {
      opened.push(text);
      return sourceOf(bytesOf(text));
    };
    const chain = chainSources([opening("ab"), opening(""), opening("c")]);
    expect(opened).toEqual([]);
    expect(await chain.read()).toEqual({ kind: "bytes", bytes: bytesOf("ab") });
    expect(opened).toEqual(["ab"]);
    expect(await readAll(chain)).toEqual({ bytes: bytesOf("c"), fault: null });
    expect(await chain.read()).toEqual(END);
    expect(await chainSources([]).read()).toEqual(END);
  });

  it("stays at the first fault", async () => {
    const broken = new ReadableStream<Uint8Array>({ pull: (controller) => controller.error("gone") });
    const chain = chainSources([() => streamSource(broken, "it broke"), () => sourceOf(bytesOf("never"))]);
    expect(await chain.read()).toMatchObject({ kind: "fault" });
    expect(await chain.read()).toMatchObject({ kind: "fault" });
  });
});
