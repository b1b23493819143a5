/** The beginning of an answer for which others wait. */
import { describe, expect, it, vi } from "vitest";
import { announcing } from "../../../src/executors/contexts/leader.ts";

const SSE = { "content-type": "text/event-stream" };

async function announced(response: Response): Promise<{ begun: ReturnType<typeof vi.fn>; response: Response }> {
  const begun = vi.fn();
  return { begun, response: await announcing(() => Promise.resolve(response), begun)("https://up.example", {}) };
}

describe("the answer of a call for which others wait", () => {
  it("begins with the first bytes of its stream, not with its headers, and once", async () => {
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    const { begun, response } = await announced(new Response(readable, { headers: SSE }));
    expect(begun).not.toHaveBeenCalled();
    const text = response.text();
    const writer = writable.getWriter();
    await writer.write(new TextEncoder().encode("data: a\n\n"));
    await vi.waitFor(() => expect(begun).toHaveBeenCalledTimes(1));
    await writer.write(new TextEncoder().encode("data: b\n\n"));
    await writer.close();
    expect(await text).toBe("data: a\n\ndata: b\n\n");
    expect(begun).toHaveBeenCalledTimes(1);
  });

  it("begins with the headers if it is no stream", async () => {
    expect((await announced(Response.json({}))).begun).toHaveBeenCalledTimes(1);
  });

  it("does not begin with an error, or with a stream that ends before its first byte", async () => {
    expect((await announced(new Response("no", { status: 500, headers: SSE }))).begun).not.toHaveBeenCalled();
    const { begun, response } = await announced(new Response(new Blob([]).stream(), { headers: SSE }));
    await response.text();
    expect(begun).not.toHaveBeenCalled();
  });
});
