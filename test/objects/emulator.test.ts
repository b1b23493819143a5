import { runDurableObjectAlarm } from "cloudflare:test";
import { env, exports } from "cloudflare:workers";
import { beforeEach, describe, expect, it } from "vitest";
import type { FanOutEntrypoint, FanOutObject } from "../support/fixtures/fan-out-worker.ts";
import { ROW_BYTES_MAX } from "../support/slots.ts";
import type { Stats } from "../support/upstream-worker.ts";

declare global {
  namespace Cloudflare {
    interface Env {
      FAN_OUT: DurableObjectNamespace<FanOutObject>;
      ENTRYPOINT: Fetcher<FanOutEntrypoint>;
    }
  }
}

const HOST = "http://emulator.test";
const HOLD = `${HOST}/hold/50`;

/** Answers when so many calls wait at once, however late some of them come, and none before 50 ms, so that more are seen. */
const meetingOf = (calls: number): string => `${HOST}/hold/50/barrier/${calls}`;

beforeEach(async () => {
  await fetch(`${HOST}/reset`, { method: "POST" });
});

describe("the six slots", () => {
  it("let exactly six fetches of one object wait at once", async () => {
    expect(await object("one").fanOut(meetingOf(6), 24)).toEqual(repeat(200, 24));
    expect(await peak()).toBe(6);
  });

  it("are shared by two requests to one object at once", async () => {
    await Promise.all([object("shared").fanOut(meetingOf(6), 12), object("shared").fanOut(meetingOf(6), 12)]);
    expect(await peak()).toBe(6);
  });

  it("are six more for each further object", async () => {
    const answers = await Promise.all(["a", "b", "c", "d"].map((name) => object(name).fanOut(meetingOf(24), 12)));
    expect(answers.flat()).toEqual(repeat(200, 48));
    expect(await peak()).toBe(24);
  });

  it("limit an alarm too", async () => {
    const stub = object("alarm");
    await stub.fanOutByAlarm(meetingOf(6), 12);
    await runDurableObjectAlarm(stub);
    // It may have fired by itself before. What it left in flight would meet the calls of the next test.
    await expect.poll(stats).toMatchObject({ requests: 12, inFlight: 0, peakInFlight: 6 });
  });

  it("let exactly six fetches of one Worker request wait at once", async () => {
    expect(await fanOutFromWorker(meetingOf(6), 24)).toEqual(repeat(200, 24));
    expect(await peak()).toBe(6);
  });

  it("are six for each of two Worker requests", async () => {
    const answers = await Promise.all([fanOutFromWorker(meetingOf(12), 12), fanOutFromWorker(meetingOf(12), 12)]);
    expect(answers.flat()).toEqual(repeat(200, 24));
    expect(await peak()).toBe(12);
  });

  it("let exactly six fetches of one call of an entrypoint wait at once", async () => {
    expect(await env.ENTRYPOINT.fanOut(meetingOf(6), 24)).toEqual(repeat(200, 24));
    expect(await peak()).toBe(6);
  });

  it("are freed when headers arrive, so that 24 bodies of one object are open at once", async () => {
    expect(await object("bodies").fanOut(`${HOST}/trickle/24`, 24)).toEqual(repeat(200, 24));
  });

  it("are given back by a fetch that was aborted, and one that is still queued leaves the queue", async () => {
    const stub = object("aborted");
    expect(await stub.fanOutUntil(`${HOST}/hold/300`, 12, 30)).toBe(12);
    expect(await stub.fanOut(HOLD, 12)).toEqual(repeat(200, 12));
  });
});

describe("the barrier", () => {
  it("of six is passed by one object", async () => {
    expect(await object("six").fanOut(`${HOST}/barrier/6`, 6)).toEqual(repeat(200, 6));
  });

  it("of seven is not", async () => {
    const statuses = await object("seven").fanOut(`${HOST}/barrier/7/within/200`, 7);
    expect(statuses).toEqual(repeat(504, 7));
  });

  it("of 64 is passed by eleven objects", async () => {
    const lanes = Array.from({ length: 11 }, (_, lane) =>
      object(`lane-${lane}`).fanOut(`${HOST}/barrier/64`, lane < 10 ? 6 : 4),
    );
    expect((await Promise.all(lanes)).flat()).toEqual(repeat(200, 64));
  });
});

describe("a row", () => {
  it("holds a value of 2 MB", async () => {
    expect(await object("row").store("x".repeat(ROW_BYTES_MAX))).toBe(1);
  });

  it("refuses one byte more", async () => {
    await expect(async () => object("row").store("x".repeat(ROW_BYTES_MAX + 1))).rejects.toThrow("too big");
  });
});

function object(name: string) {
  return env.FAN_OUT.getByName(name);
}

async function fanOutFromWorker(url: string, count: number): Promise<unknown> {
  const query = new URLSearchParams({ url, count: String(count) });
  const answer = await exports.default.fetch(`http://worker.test/?${query}`);
  return answer.json();
}

async function stats(): Promise<Stats> {
  return (await fetch(`${HOST}/stats`)).json();
}

async function peak(): Promise<number> {
  return (await stats()).peakInFlight;
}

function repeat(value: number, count: number): number[] {
  return Array.from({ length: count }, () => value);
}
