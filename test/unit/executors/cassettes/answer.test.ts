/** Answers that are copied for a tape while they are read. */
import { describe, expect, it } from "vitest";
import { AnswerCopy, playedResponse } from "../../../../src/executors/cassettes/answer.ts";
import { CASSETTE_LINE_BYTES_MAX } from "../../../../src/limits.ts";

function responseOf(pieces: readonly Uint8Array[], init: ResponseInit = {}): Response {
  const left = [...pieces];
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      const piece = left.shift();
      if (piece === undefined) controller.close();
      else controller.enqueue(piece);
    },
  });
  return new Response(body, init);
}

async function piecesOf({ body }: Response): Promise<Uint8Array[]> {
  const pieces: Uint8Array[] = [];
  if (body === null) return pieces;
  for await (const piece of body) pieces.push(piece);
  return pieces;
}

async function copied(...responses: Response[]): Promise<{ copy: AnswerCopy; read: Uint8Array[] }> {
  const copy = new AnswerCopy();
  let read: Uint8Array[] = [];
  for (const response of responses) {
    read = await piecesOf(copy.copied(response));
  }
  return { copy, read };
}

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

describe("a copied answer", () => {
  it("has status, content type and pieces, and its reader gets the bytes unchanged", async () => {
    const pieces = [bytes("data: a\n\n"), bytes("data: b\n\n")];
    const headers = { "content-type": "text/event-stream", "set-cookie": "secret" };
    const { copy, read } = await copied(responseOf(pieces, { status: 201, headers }));
    expect(read).toEqual(pieces);
    const chunks = ["data: a\n\n", "data: b\n\n"];
    expect(copy.answer).toEqual({ status: 201, contentType: "text/event-stream", chunks });
  });

  it("keeps a character whole that its pieces cut, and a byte order mark", async () => {
    const whole = bytes("\ufeffé😀");
    const { copy } = await copied(responseOf(Array.from(whole, (byte) => new Uint8Array([byte]))));
    expect(copy.answer?.chunks.join("")).toBe("\ufeffé😀");
    expect(copy.answer?.chunks).toEqual(["\ufeff", "é", "😀"]);
  });

  it("is none if it is no text, ends in a character, or is too long", async () => {
    expect((await copied(responseOf([new Uint8Array([0xff])]))).copy.answer).toBeNull();
    expect((await copied(responseOf([bytes("é").slice(0, 1)]))).copy.answer).toBeNull();
    const long = (more: number): Response => responseOf([new Uint8Array(CASSETTE_LINE_BYTES_MAX + more).fill(97)]);
    expect((await copied(long(0))).copy.answer).not.toBeNull();
    expect((await copied(long(1))).copy.answer).toBeNull();
  });

  it("is the last of several responses: an attempt may be sent in another form", async () => {
    const { copy } = await copied(responseOf([bytes("no")], { status: 400 }), responseOf([bytes("yes")]));
    expect(copy.answer).toMatchObject({ status: 200, chunks: ["yes"] });
  });
});

describe("a played answer", () => {
  it("comes in its pieces, or announces its length if it is one", async () => {
    const many = playedResponse({ status: 200, contentType: "text/event-stream", chunks: ["a", "é"] });
    expect([many.headers.get("content-length"), many.headers.get("content-type")]).toEqual([null, "text/event-stream"]);
    expect(await piecesOf(many)).toEqual([bytes("a"), bytes("é")]);
    const one = playedResponse({ status: 400, contentType: "application/json", chunks: ["{é}"] });
    expect([one.status, one.headers.get("content-length"), await one.text()]).toEqual([400, "4", "{é}"]);
    expect(await playedResponse({ status: 200, contentType: "", chunks: [] }).text()).toBe("");
  });
});
