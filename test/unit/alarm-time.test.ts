/** The times of alarms, on a platform whose alarms may fire in the very millisecond in which they are due. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { alarmMs } from "../../durable-objects/alarm-time.ts";
import type { Objects } from "../../src/objects/address.ts";
import { ProviderBatchObject } from "../../durable-objects/provider-batch/object.ts";
import { ROOT } from "../../scripts/root.ts";
import { newPart, type ProviderJob } from "../../src/executors/provider-batch/part.ts";

const NOW = 1_800_000_000_000;
const DAY_MS = 86_400_000;

describe("the time of an alarm", () => {
  it("is after the present millisecond, which may be that of the alarm whose handler runs", () => {
    expect(alarmMs(NOW, NOW)).toBe(NOW + 1);
    expect(alarmMs(NOW - 5, NOW)).toBe(NOW + 1);
    expect(alarmMs(NOW + 5, NOW)).toBe(NOW + 5);
  });

  it("is a whole millisecond that is not before the wanted time", () => {
    expect(alarmMs(NOW + 0.25, NOW)).toBe(NOW + 1);
    expect(alarmMs(NOW + 506.25, NOW)).toBe(NOW + 507);
  });

  it("is computed here wherever an object sets its alarm", () => {
    const folder = join(ROOT, "durable-objects");
    const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"));
    const calls = files.flatMap((file) => {
      const text = readFileSync(join(folder, file), "utf8");
      return [...text.matchAll(/torage\.setAlarm\((.*)\)/g)].map(([, time = ""]) => `${file}: ${time}`);
    });
    // The run's alarm has its own rules, which end here too.
    const others = calls.filter((call) => !/: alarmMs\(/.test(call));
    expect(calls.length).toBeGreaterThan(5);
    expect(others).toEqual([join("run", "store", "store.ts") + ": atMs"]);
  });
});

/**
 * An object's storage, of which workerd's alarm: it has whole milliseconds, none of them in the past, and if a handler sets it to
 * the time for which that handler was called, it is over when the handler ends.
 */
class AlarmStorage {
  readonly #values = new Map<string, unknown>();
  #alarmMs: number | null = null;
  #firingMs: number | null = null;

  readonly kv = {
    get: (key: string): unknown => this.#values.get(key),
    put: (key: string, value: unknown): void => void this.#values.set(key, value),
    delete: (key: string): boolean => this.#values.delete(key),
  };

  setAlarm(atMs: number): Promise<void> {
    this.#alarmMs = Math.max(Math.floor(atMs), Date.now());
    return Promise.resolve();
  }

  deleteAll(): Promise<void> {
    this.#values.clear();
    this.#alarmMs = null;
    return Promise.resolve();
  }

  /** Calls the handler whenever the alarm is due, in that very millisecond, until the alarm is over or `untilMs`. */
  async fire(handler: () => Promise<void>, untilMs: number): Promise<void> {
    while (this.#alarmMs !== null && this.#alarmMs !== this.#firingMs && this.#alarmMs <= untilMs) {
      this.#firingMs = this.#alarmMs;
      this.#alarmMs = null;
      vi.setSystemTime(this.#firingMs);
      await handler();
    }
  }
}

/** The job of a group whose only batch is at its provider. */
function jobAtProvider(): ProviderJob {
  const about = { isStopped: false, liveAtMs: NOW + DAY_MS, deadlineAtMs: NOW + DAY_MS, pollMs: 100 };
  const part = newPart({ page: 1, upstream: "up", model: "m", hasSchemas: false }, NOW);
  const parts = [{ ...part, fileId: "file-1", createdAtMs: NOW, batchId: "batch_1" }];
  return { runId: "run_1", seq: 1, about, nextPage: 2, claimAtMs: null, parts };
}

describe("the object that feeds a provider's batches", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["Date"], now: NOW });
  });
  afterEach(() => {
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  it("polls on, although most of its delays end between two milliseconds", async () => {
    const polledMs: number[] = [];
    vi.stubGlobal("fetch", () => {
      polledMs.push(Date.now() - NOW);
      return Promise.resolve(Response.json({ id: "batch_1", status: "in_progress" }));
    });
    const storage = new AlarmStorage();
    storage.kv.put("job", jobAtProvider());
    const batch = { poll_ms: 100 };
    const prices = { "*": { input: 2, output: 2, batch: { input: 1, output: 1 } } };
    const up = { kind: "openai", base_url: "https://up.test/v1", api_key: "secret:KEY", models: ["*"], prices, batch };
    const ctx = { storage } as unknown as DurableObjectState;
    const env = { ADMIN_KEY: "a".repeat(32), KEY: "k", UPSTREAMS: { up } } as unknown as Objects;
    const object = new ProviderBatchObject(ctx, env);
    await storage.setAlarm(NOW);
    await storage.fire(() => object.alarm(), NOW + 4_000);
    // Each delay is half as much longer: 150, 225, 337.5, 506.25, 759.375, 1139.0625 ms, each up to the next millisecond.
    expect(polledMs).toEqual([0, 150, 375, 713, 1_220, 1_980, 3_120]);
  });
});
