import { describe, expect, it } from "vitest";
import { BATCH_PAUSE_MS } from "../../../../src/limits.ts";
import { batchReaderOf, pausing } from "../../../../src/upstream/relay/batches.ts";
import { FakeTimer, Source } from "./make.ts";

/** A reader whose reads end at given times. */
function timed(...timesMs: number[]) {
  const timer = new FakeTimer();
  let nowMs = 0;
  let reads = 0;
  const reader = pausing(
    {
      read: () => {
        nowMs = timesMs[reads++] ?? Number.POSITIVE_INFINITY;
        return Promise.resolve({ done: false, value: new Uint8Array(1) });
      },
      cancel: () => Promise.resolve(),
    },
    { now: () => nowMs, lookTimer: timer.start },
  );
  return { timer, reader, reads: () => reads };
}

const settled = () => new Promise((resolve) => setTimeout(resolve));

describe("a reader of batches", () => {
  it("reads a slow stream chunk by chunk, without a pause", async () => {
    const { timer, reader } = timed(0, 5, 10, 15);
    for (let read = 0; read < 4; read++) {
      await reader.read();
      expect(timer.pendingMs).toEqual([]);
    }
  });

  it("pauses before it reads on from a stream that was read twice in little time", async () => {
    const { timer, reader, reads } = timed(0, 2 * BATCH_PAUSE_MS - 1, 50, 100);
    await reader.read();
    await reader.read();
    const third = reader.read();
    await settled();
    expect([reads(), timer.pendingMs]).toEqual([2, [BATCH_PAUSE_MS]]);
    timer.elapse();
    await third;
    // That read came late, so the stream is slow again.
    await reader.read();
    expect([reads(), timer.pendingMs]).toEqual([4, []]);
  });

  it("is the stream's own reader where the runtime gathers no chunks", async () => {
    const deps = { pipe: () => new TransformStream(), now: Date.now, lookTimer: new FakeTimer().start };
    const reader = batchReaderOf(Source.of("a", "b").stream, deps);
    const first = await reader.read();
    expect(new TextDecoder().decode(first.value)).toBe("a");
  });
});
