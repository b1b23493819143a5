import { describe, expect, it } from "vitest";
import { pump, type Tap } from "../../../../src/providers/relay/pump.ts";
import { realTimer } from "../make.ts";
import { bytesOf, Source } from "./make.ts";

/** A tap that notes what it saw and adds a last word. */
function noting() {
  const seen: string[] = [];
  const tap: Tap<string> = {
    feed: (chunk) => {
      seen.push(new TextDecoder().decode(chunk));
      return [chunk];
    },
    end: (how) => {
      seen.push(how);
      return { bytes: [bytesOf("!")], outcome: how };
    },
  };
  return { seen, tap };
}

function pumped(source: Source, tap: Tap<string>, { closes = true, head = [] as string[] } = {}) {
  const controller = new AbortController();
  const deps = { controller, pipe: () => new TransformStream<Uint8Array, Uint8Array>(), lookTimer: realTimer };
  const from = { head: head.map((text) => bytesOf(text)), reader: source.stream.getReader() };
  return { controller, ...pump(from, tap, { closes: () => closes, deps }) };
}

const textOf = async (body: ReadableStream<Uint8Array>) => await new Response(body).text();

describe("pump", () => {
  it("passes what was read ahead, then the rest, then the tap's last bytes", async () => {
    const { seen, tap } = noting();
    const { body, ended, controller } = pumped(Source.of("c", "d"), tap, { head: ["a", "b"] });
    expect(await textOf(body)).toBe("abcd!");
    expect(await ended).toEqual({ outcome: "clean", by: "source" });
    expect(seen).toEqual(["a", "b", "c", "d", "clean"]);
    expect(controller.signal.aborted).toBe(false);
  });

  it("closes a broken source in order where the tap has told its client", async () => {
    const { tap } = noting();
    const source = new Source((at) => (at === 0 ? "a" : (source.break(), "")));
    const { body, ended } = pumped(source, tap);
    expect(await textOf(body)).toBe("a!");
    expect(await ended).toEqual({ outcome: "broken", by: "broken" });
  });

  it("breaks off where it has not, and does not take that for the client's leaving", async () => {
    const { tap } = noting();
    const source = new Source((at) => (at === 0 ? "a" : (source.break(), "")));
    const { body, ended, controller } = pumped(source, tap, { closes: false });
    await expect(textOf(body)).rejects.toThrow();
    expect(await ended).toEqual({ outcome: "broken", by: "broken" });
    expect(controller.signal.aborted).toBe(false);
  });

  it("breaks off a source that ended in order, where what it came to is not whole", async () => {
    const { tap } = noting();
    const { body, ended } = pumped(Source.of("a"), tap, { closes: false });
    await expect(textOf(body)).rejects.toThrow("before it was whole");
    expect(await ended).toEqual({ outcome: "clean", by: "source" });
  });

  it("ends once, and lets go of the source, when its client leaves", async () => {
    const { seen, tap } = noting();
    const source = new Source(() => "a");
    const { body, ended, controller } = pumped(source, tap);
    const reader = body.getReader();
    await reader.read();
    await reader.cancel();
    expect(await ended).toMatchObject({ outcome: "broken" });
    expect(seen.filter((word) => word === "broken")).toHaveLength(1);
    expect([controller.signal.aborted, source.cancelled]).toEqual([true, true]);
  });

  it("never rejects, though every part of it breaks at once", async () => {
    const { tap } = noting();
    const source = new Source();
    const { body, ended } = pumped(source, tap, { closes: false });
    source.break();
    await body.cancel();
    await expect(ended).resolves.toMatchObject({ outcome: "broken" });
  });
});
