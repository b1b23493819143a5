import { createHash } from "node:crypto";
import { describe, expect, it, vi } from "vitest";
import {
  LogExport,
  type ExportedRun,
  type ExportHost,
  type ExportMeta,
} from "../../../../../durable-objects/run/log/export.ts";
import type { LoggedEvent } from "../../../../../src/run/log.ts";
import { OTLP_INTERVAL_MS, OTLP_RETRY_MS, OTLP_SPANS_MAX, OTLP_TRIES_MAX } from "../../../../../src/limits.ts";
import { EXPORT_START } from "../../../../../src/log/otlp/batch.ts";
import { spansIn } from "../../../../support/collector.ts";

const CLOSED: LoggedEvent = { atMs: 5, group: null, event: "run_closed", status: "closed" };
const NOTE: LoggedEvent = { atMs: 5, group: null, event: "client", json: "{}" };

/** A run's object whose instances can be lost: what is stored stays. `post`: the collector. */
function objectWith(events: LoggedEvent[], post: (body: string) => Promise<number | null>) {
  const stored = { cursor: EXPORT_START, writes: 0 };
  const rows = events.map((event, at) => ({ last: at + 1, lines: JSON.stringify(event) }));
  const run: ExportedRun = {
    settings: { id: "run_1", parentId: null, name: null, createdAtMs: 1 },
    storedGroup: () => undefined,
    engine: { log: { lastSeq: events.length } },
    readableSeq: events.length,
    addWrite: (write) => write(),
  };
  const meta: ExportMeta = {
    get: () => stored.cursor,
    set: (_, cursor) => {
      stored.cursor = cursor;
      stored.writes += 1;
    },
  };
  const object = { run: run as ExportedRun | null, nowMs: 1_000, posts: 0, stored };
  const host: ExportHost = {
    get run() {
      return object.run;
    },
    store: { log: { after: (seq) => rows.filter(({ last }) => last > seq) }, meta },
    flushLog: () => Promise.resolve(),
    change: (change) => Promise.resolve(change(run)),
  };
  /** A new instance of the object, and a way to let its exports end. */
  const instance = () => {
    let kept = Promise.resolve();
    const logExport = new LogExport(host, {
      now: () => object.nowMs,
      hash: (text) => Promise.resolve(createHash("sha256").update(text).digest("hex")),
      post: (request) => {
        object.posts += 1;
        return post(JSON.stringify(request));
      },
      keep: (promise) => void (kept = promise),
      over: () => undefined,
    });
    return { logExport, ended: () => kept };
  };
  return { object, instance };
}

describe("the export of a log", () => {
  it("is due after a pause, once for all events, and then never again, for the next instance either", async () => {
    const { object, instance } = objectWith([NOTE, CLOSED, NOTE], () => Promise.resolve(200));
    const { logExport, ended } = instance();
    expect(logExport.delayMs(object.nowMs)).toBe(OTLP_INTERVAL_MS);
    logExport.start();
    logExport.start();
    await ended();
    expect([object.posts, object.stored.writes, object.stored.cursor.seq]).toEqual([1, 1, 3]);
    expect(logExport.delayMs(object.nowMs)).toBe(null);
    expect(instance().logExport.delayMs(object.nowMs)).toBe(null);
  });

  it("of events without a span posts nothing, and does not wake the next instance", async () => {
    const { object, instance } = objectWith([NOTE], () => Promise.resolve(200));
    const { logExport, ended } = instance();
    logExport.start();
    await ended();
    expect(object.posts).toBe(0);
    expect(instance().logExport.delayMs(object.nowMs)).toBe(null);
  });

  it("sets an alarm while it runs, for the case that its instance is lost: the next one repeats the post", async () => {
    const answer = Promise.withResolvers<number>();
    const { object, instance } = objectWith([CLOSED], () => answer.promise);
    const lost = instance();
    lost.logExport.start();
    expect(lost.logExport.delayMs(object.nowMs)).toBeGreaterThan(OTLP_INTERVAL_MS);
    const next = instance();
    expect(next.logExport.delayMs(object.nowMs)).toBe(OTLP_INTERVAL_MS);
    next.logExport.start();
    answer.resolve(200);
    await next.ended();
    expect(object.posts).toBe(2);
    expect(object.stored.cursor).toEqual({ seq: 1, tries: 0, dropped: 0 });
  });

  it("to a collector that is away waits longer after each post, and gives up after a few, however often instances change", async () => {
    const { object, instance } = objectWith([CLOSED], () => Promise.resolve(null));
    for (let tries = 1; tries <= OTLP_TRIES_MAX; tries++) {
      const { logExport, ended } = instance();
      logExport.start();
      await ended();
      if (tries === OTLP_TRIES_MAX) break;
      expect(logExport.delayMs(object.nowMs)).toBe(OTLP_RETRY_MS * 2 ** (tries - 1));
      logExport.start();
      expect(object.posts).toBe(tries);
    }
    expect(object.stored.cursor).toEqual({ seq: 1, tries: 0, dropped: 1 });
    expect(instance().logExport.delayMs(object.nowMs)).toBe(null);
  });

  it("holds one request of bounded size while the collector hangs, however long the log and however often it is started", async () => {
    const bodies: string[] = [];
    const hanging = Promise.withResolvers<null>();
    const events = Array.from({ length: 20 * OTLP_SPANS_MAX }, () => CLOSED);
    const { object, instance } = objectWith(events, (body) => {
      bodies.push(body);
      return hanging.promise;
    });
    const { logExport, ended } = instance();
    for (let turn = 0; turn < 1_000; turn++) logExport.start();
    await vi.waitFor(() => expect(bodies).toHaveLength(1));
    for (let turn = 0; turn < 1_000; turn++) logExport.start();
    expect(spansIn(bodies[0] ?? "")).toHaveLength(OTLP_SPANS_MAX);
    hanging.resolve(null);
    await ended();
    // One failed post ends the export: no further batch is made before the pause is over.
    expect([object.posts, object.stored.cursor]).toEqual([1, { seq: 0, tries: 1, dropped: 0 }]);
    logExport.start();
    expect(object.posts).toBe(1);
  });

  it("writes nothing for a run that was deleted meanwhile", async () => {
    const answer = Promise.withResolvers<number>();
    const { object, instance } = objectWith([CLOSED], () => answer.promise);
    const { logExport, ended } = instance();
    logExport.start();
    object.run = null;
    answer.resolve(200);
    await ended();
    expect(object.stored.writes).toBe(0);
    expect(logExport.delayMs(object.nowMs)).toBe(null);
  });
});
