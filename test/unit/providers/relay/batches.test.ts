import { describe, expect, it } from "vitest";
import {
  BATCH_FIRST_READS,
  BATCH_MANY_EVENTS,
  BATCH_PAUSE_MS,
  BATCH_PAUSE_MS_MAX,
  BATCH_RETRY_READS,
  BATCH_STREAMS_PER_MS,
} from "../../../../src/limits.ts";
import { batchReaderOf, EditedStreams, pausing, type ChunkReader } from "../../../../src/providers/relay/batches.ts";
import { bytesOf, FakeTimer, Source } from "./make.ts";

const ONE = "data: {}\n\n";
const TWO = ONE + ONE;

/** A reader whose reads end at given times with given bytes, then at the stream's end; it notes what was read from. */
function timed(reads: readonly { atMs: number; text?: string }[], edited = new EditedStreams()) {
  const timer = new FakeTimer();
  const log: string[] = [];
  let nowMs = 0;
  const named = (name: string): ChunkReader => ({
    read: () => {
      log.push(name);
      const next = reads[log.length - 1];
      if (next === undefined) return Promise.resolve({ done: true, value: undefined });
      nowMs = next.atMs;
      return Promise.resolve({ done: false, value: bytesOf(next.text ?? ONE) });
    },
    cancel: () => Promise.resolve(),
  });
  const deps = { now: () => nowMs, lookTimer: timer.start, edited, gather: () => named("batch") };
  const reader = pausing(named("chunk"), deps);
  /** Reads once, and says what from, and whether after a pause. */
  const readOnce = async (): Promise<string> => {
    const reading = reader.read();
    await settled();
    const paused = timer.pendingMs.length > 0;
    timer.elapse();
    await reading;
    return `${log.at(-1)}${paused ? " after a pause" : ""}`;
  };
  return { timer, log, reader, readOnce };
}

const settled = () => new Promise((resolve) => setTimeout(resolve));
const times = (count: number, stepMs: number, text?: string) =>
  Array.from({ length: count }, (_, at) => ({ atMs: at * stepMs, ...(text === undefined ? {} : { text }) }));

/** The reads of a stream, one after the other. */
async function readsOf({ readOnce }: ReturnType<typeof timed>, count: number): Promise<string[]> {
  const reads: string[] = [];
  while (reads.length < count) reads.push(await readOnce());
  return reads;
}

const ofChunks = (count: number) => Array.from({ length: count }, () => "chunk");

describe("a reader of batches", () => {
  it("reads a slow stream chunk by chunk, without a pause", async () => {
    expect(await readsOf(timed(times(40, 2 * BATCH_PAUSE_MS)), 40)).toEqual(ofChunks(40));
  });

  it("pauses before each read of a fast stream, from its first chunks on, while a pause gathers several events", async () => {
    const stream = timed([...times(BATCH_FIRST_READS, 1), ...times(20, 0, TWO)]);
    const paused = Array.from({ length: 20 }, () => "batch after a pause");
    expect(await readsOf(stream, BATCH_FIRST_READS + 20)).toEqual([...ofChunks(BATCH_FIRST_READS), ...paused]);
  });

  it("tries again only after some reads if a pause has gathered a single event", async () => {
    const stream = timed(times(BATCH_FIRST_READS + 2 + BATCH_RETRY_READS, 1));
    const unpaused = Array.from({ length: BATCH_RETRY_READS }, () => "batch");
    expect(await readsOf(stream, BATCH_FIRST_READS + 2 + BATCH_RETRY_READS)).toEqual([
      ...ofChunks(BATCH_FIRST_READS),
      "batch after a pause",
      ...unpaused,
      "batch after a pause",
    ]);
  });

  it("pauses before it reads a stream that looks slow beside many others, for the isolate may be what is slow", async () => {
    const edited = new EditedStreams();
    for (let others = 1; others < BATCH_STREAMS_PER_MS; others++) edited.begin();
    const stream = timed(times(BATCH_FIRST_READS + 2, 1_000, TWO), edited);
    const paused = ["batch after a pause", "batch after a pause"];
    expect(await readsOf(stream, BATCH_FIRST_READS + 2)).toEqual([...ofChunks(BATCH_FIRST_READS), ...paused]);
  });

  it("pauses twice as long after a batch of many events, and no longer after a batch of fewer", async () => {
    const batches = [BATCH_MANY_EVENTS, BATCH_MANY_EVENTS + 1, BATCH_MANY_EVENTS - 1, BATCH_MANY_EVENTS - 1];
    const texts = batches.map((events) => ({ atMs: BATCH_FIRST_READS, text: ONE.repeat(events) }));
    const stream = timed([...times(BATCH_FIRST_READS, 1), ...texts]);
    await readsOf(stream, BATCH_FIRST_READS);
    const pauses: number[] = [];
    for (const _ of batches) {
      const reading = stream.reader.read();
      await settled();
      pauses.push(...stream.timer.pendingMs);
      stream.timer.elapse();
      await reading;
    }
    expect(pauses).toEqual([BATCH_PAUSE_MS, 2 * BATCH_PAUSE_MS, 2 * BATCH_PAUSE_MS, BATCH_PAUSE_MS]);
  });

  it("is the stream's own reader where the runtime gathers no chunks", async () => {
    const deps = { pipe: () => new TransformStream(), now: Date.now, lookTimer: new FakeTimer().start };
    const reader = batchReaderOf(Source.of("a", "b").stream, { ...deps, edited: new EditedStreams() });
    const first = await reader.read();
    expect(new TextDecoder().decode(first.value)).toBe("a");
  });
});

describe("streams that are edited at once", () => {
  it("wait the longer for a batch the more they are, within bounds", () => {
    const edited = new EditedStreams();
    const pauses: number[] = [];
    for (let streams = 0; streams <= 1_000; streams++) {
      pauses.push(edited.pauseMs);
      edited.begin();
    }
    expect([pauses[0], pauses[1], pauses[2 * BATCH_STREAMS_PER_MS]]).toEqual([BATCH_PAUSE_MS, BATCH_PAUSE_MS, 2]);
    expect([pauses[2 * BATCH_STREAMS_PER_MS + 1], pauses[1_000]]).toEqual([3, BATCH_PAUSE_MS_MAX]);
  });

  it("are counted until they end, break or are cancelled", async () => {
    const edited = new EditedStreams();
    for (let others = 0; others < 2 * BATCH_STREAMS_PER_MS; others++) edited.begin();
    expect(edited.pauseMs).toBe(2);
    const ended = timed([], edited);
    const cancelled = timed([], edited);
    const deps = { now: () => 0, lookTimer: new FakeTimer().start, edited };
    const breaking = { read: () => Promise.reject(new Error("broken")), cancel: () => Promise.resolve() };
    const broken = pausing(breaking, { ...deps, gather: () => breaking });
    expect(edited.pauseMs).toBe(3);
    await ended.reader.read();
    await cancelled.reader.cancel();
    await cancelled.reader.cancel();
    expect(edited.pauseMs).toBe(3);
    await expect(broken.read()).rejects.toThrow("broken");
    expect(edited.pauseMs).toBe(2);
  });
});
