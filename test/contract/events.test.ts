/** A run's events as they happen: each once, in order, to every follower, however often it has to come back. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { FOLLOWERS_PER_TOKEN_MAX } from "../../src/limits.ts";
import { endOf, eventsOf, framesOf, lineOf, logOf, numbered, openGroup, type LogLine } from "./following.ts";
import { startWorld, type RunAccess, type World } from "./world.ts";

let world: World;
beforeAll(async () => void (world = await startWorld()));
beforeEach(() => world.upstream.forget());
afterAll(() => world.stop());

type Following = { after?: number; lastEventId?: string; signal?: AbortSignal };

/** Requests the events of a run. */
function follow(run: RunAccess, { after, lastEventId, signal }: Following = {}): Promise<Response> {
  const headers = lastEventId === undefined ? {} : { "last-event-id": lastEventId };
  const path = `/runs/${run.id}/events${after === undefined ? "" : `?after=${after}`}`;
  return world.gateway.fetch(path, { token: run.token, headers, ...(signal === undefined ? {} : { signal }) });
}

/** Every event that a stream has until the gateway ends it. */
async function allOf(response: Response): Promise<LogLine[]> {
  const events: LogLine[] = [];
  for await (const event of eventsOf(response)) events.push(event);
  return events;
}

const close = (run: RunAccess) => run.send(`/runs/${run.id}/close`, { method: "POST" });

describe("GET /runs/:id/events", () => {
  it("streams a run's events from its beginning, equal to its log, and ends with it", { tags: ["slow"] }, async () => {
    const run = await world.openRun({ default_model: "up-1" });
    const following = follow(run).then(allOf);
    await run.send("/batch", { json: { prompts: ["a", "{{status/503/first/1}} b"] } });
    await run.send("/query", { json: { prompt: "c" } });
    await run.send(`/runs/${run.id}/log`, { json: { event_type: "final_result", output: "d\n\ne" } });
    await close(run);
    const events = await following;
    expect(events.at(-1)?.event_type).toBe("run_closed");
    expect(events).toEqual(await logOf(run));
    expect(events.map(({ seq }) => seq)).toEqual(numbered(events.length));
  });

  it("sends its headers and a comment before anything happens", async () => {
    const run = await world.openRun();
    const response = await follow(run, { after: 1 });
    expect(response.headers.get("cache-control")).toBe("no-store");
    for await (const frame of framesOf(response)) {
      expect(frame).toEqual({ id: null, type: null, data: "", comment: "keep-alive" });
      break;
    }
  });

  it("sends each event when it happens, not when the run ends", async () => {
    const run = await world.openRun({ default_model: "up-1", max_parallel: 1 });
    const arrived: string[] = [];
    const following = follow(run).then(async (response) => {
      for await (const { event_type } of eventsOf(response)) arrived.push(event_type);
    });
    const asked = run.send("/batch", { json: { prompts: ["{{latch/live-a}} a", "{{latch/live-b}} b"] } });
    const count = (type: string) => arrived.filter((one) => one === type).length;
    // Each call is answered once the events before its end have arrived.
    for (const [ended, latch] of ["live-a", "live-b"].entries()) {
      await expect.poll(() => [count("attempt_started"), count("slot_completed")]).toEqual([ended + 1, ended]);
      expect([count("group_started"), count("group_completed")]).toEqual([1, 0]);
      world.upstream.open(latch);
    }
    await asked;
    await close(run);
    await following;
    expect(count("slot_completed")).toBe(2);
  });

  it("resumes after Last-Event-ID or ?after; the header takes precedence", async () => {
    const run = await world.openRun({ default_model: "up-1" });
    await run.send("/batch", { json: { prompts: ["a", "b", "c"] } });
    await close(run);
    const all = await logOf(run);
    expect(await allOf(await follow(run))).toEqual(all);
    expect(await allOf(await follow(run, { lastEventId: "3" }))).toEqual(all.slice(3));
    expect(await allOf(await follow(run, { after: 5 }))).toEqual(all.slice(5));
    expect(await allOf(await follow(run, { after: 2, lastEventId: "7" }))).toEqual(all.slice(7));
    expect(await allOf(await follow(run, { after: 2, lastEventId: "" }))).toEqual(all.slice(2));
    expect(await allOf(await follow(run, { after: all.length }))).toEqual([]);
  });

  it.each(["x", "-1", "1.5", "9".repeat(20)])("refuses %s as Last-Event-ID", async (lastEventId) => {
    const run = await world.openRun();
    const answer = await run.send(`/runs/${run.id}/events`, { headers: { "last-event-id": lastEventId } });
    expect([answer.status, answer.json]).toMatchObject([400, { error: { param: "last-event-id" } }]);
  });

  it.each([
    ["cancelled", "DELETE", ""],
    ["closed", "POST", "/close"],
  ])("ends after the last call's event when the run is %s", { tags: ["slow"] }, async (status, method, path) => {
    const run = await world.openRun({ default_model: "up-1" });
    const { id } = await openGroup(run, { prompts: ["{{delay/2500}} a", "{{delay/2500}} b"] });
    const following = follow(run).then(allOf);
    await expect.poll(() => world.upstream.counters.inFlight).toBe(2);
    await run.send(`/runs/${run.id}${path}`, { method });
    const events = await following;
    expect(events.filter(({ event_type }) => event_type === "run_closed")).toMatchObject([{ status }]);
    const ended = events.filter(({ event_type }) => event_type === "slot_completed");
    expect(ended.map((event) => event["status"])).toEqual(
      status === "closed" ? ["completed", "completed"] : ["cancelled", "cancelled"],
    );
    expect(events.findLast(({ event_type }) => event_type === "group_completed")?.parallel_group_id).toBe(id);
  });

  it("ends when the run expires", { tags: ["slow"] }, async () => {
    const run = await world.openRun({ expires_in_s: 1 });
    const events = await allOf(await follow(run));
    expect(events.at(-1)).toMatchObject({ event_type: "run_closed", status: "expired" });
  });

  it("sends as many followers as a token may have the same events", async () => {
    const run = await world.openRun({ default_model: "sim/echo?ms=5" });
    const following = Array.from({ length: FOLLOWERS_PER_TOKEN_MAX }, () => follow(run).then(allOf));
    await run.send("/batch", { json: { prompts: Array.from({ length: 100 }, (_, index) => `${index}`) } });
    await close(run);
    const log = await logOf(run);
    for (const events of await Promise.all(following)) expect(events).toEqual(log);
  });

  it("sends a slow reader every event, and delays no other reader", { tags: ["slow"] }, async () => {
    const run = await world.openRun({ default_model: "sim/echo" });
    const response = await follow(run);
    const reader = eventsOf(response);
    const first = await reader.next();
    expect(first.value).toMatchObject({ seq: 1 });
    // More than any buffer on the way holds, while the reader takes nothing.
    const output = "x".repeat(7_500);
    for (let step = 0; step < 20; step += 1) {
      const events = Array.from({ length: 250 }, () => ({ event_type: "mine", step, output }));
      expect((await run.send(`/runs/${run.id}/log`, { json: events })).status).toBe(201);
    }
    const group = await run.send("/batch", { json: { prompts: ["a"] } });
    expect(group.status).toBe(200);
    await close(run);
    let last = 1;
    for await (const { seq } of reader) expect(seq).toBe((last += 1));
    const log = await logOf(run, "?after=5001");
    expect(last).toBe(log.at(-1)?.seq);
  });
});

const seed = Number(process.env["FANOUT_SEED"] ?? Math.floor(Math.random() * 2 ** 31));

describe("a follower that is disconnected 50 times", () => {
  it(`receives each of 5,000 events once and in order (FANOUT_SEED=${seed})`, { tags: ["slow"] }, async () => {
    const random = draws(seed);
    const run = await world.openRun({ default_model: "sim/random?min=20&max=120", max_parallel: 32 });
    const batches = (async () => {
      for (let batch = 0; batch < 5; batch += 1) {
        const prompts = Array.from({ length: 340 }, (_, index) => `${batch} ${index}`);
        expect((await run.send("/batch", { json: { prompts } })).status).toBe(200);
      }
      await close(run);
    })();
    const told: LogLine[] = [];
    const cutAt: number[] = [];
    let isWhole = false;
    while (!isWhole) {
      const cut = new AbortController();
      const response = await follow(run, { lastEventId: String(told.length), signal: cut.signal });
      // Counted in events, so that a busy machine has as many in each stream, and the run does not end before the last cut.
      let left = cutAt.length < 50 ? Math.floor(random() * 60) : Infinity;
      for await (const event of eventsOf(response)) {
        if (left === 0) break;
        told.push(event);
        left -= 1;
      }
      isWhole = left !== 0;
      // In the middle of what has arrived.
      cut.abort();
      if (!isWhole) cutAt.push(told.length);
    }
    await batches;
    expect(cutAt).toHaveLength(50);
    // Some cuts occur before the first event of their stream.
    expect(new Set(cutAt).size).toBeGreaterThan(25);
    expect(told.length).toBeGreaterThan(5_000);
    expect(told.map(({ seq }) => seq)).toEqual(numbered(told.length));
    expect(told).toEqual(await logOf(run));
  });
});

/** Draws in [0, 1) that a seed decides. */
function draws(from: number): () => number {
  let state = from >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

describe("a WebSocket", () => {
  const socketTo = (run: RunAccess, query = "") =>
    new WebSocket(`${world.gateway.url.replace("http", "ws")}/runs/${run.id}/events${query}`, {
      headers: { authorization: `Bearer ${run.token}` },
    });

  /** Everything that a socket is sent until the gateway closes it. */
  function messagesOf(socket: WebSocket): Promise<{ lines: LogLine[]; code: number }> {
    const lines: LogLine[] = [];
    return new Promise((resolve, reject) => {
      socket.addEventListener("message", ({ data }) => void lines.push(lineOf(String(data))));
      socket.addEventListener("close", ({ code }) => resolve({ lines, code }));
      socket.addEventListener("error", () => reject(new Error("the socket failed")));
    });
  }

  it("receives the log's lines as messages, live, and is closed when the run has ended", async () => {
    const run = await world.openRun({ default_model: "up-1" });
    const hearing = messagesOf(socketTo(run));
    await run.send("/batch", { json: { prompts: ["{{delay/100}} a", "b"] } });
    await close(run);
    const { lines, code } = await hearing;
    expect([lines, code]).toEqual([await logOf(run), 1000]);
  });

  it("resumes with ?after", async () => {
    const run = await world.openRun({ default_model: "up-1" });
    await run.send("/batch", { json: { prompts: ["a", "b"] } });
    await close(run);
    const { lines } = await messagesOf(socketTo(run, "?after=4"));
    expect(lines).toEqual((await logOf(run)).slice(4));
  });

  /** Eleven megabytes of log, in events that followers get whole; returns its lines. */
  async function fillLog(run: RunAccess): Promise<LogLine[]> {
    const output = "x".repeat(7_500);
    for (let step = 0; step < 3; step += 1) {
      const events = Array.from({ length: 500 }, () => ({ event_type: "mine", step, output }));
      expect((await run.send(`/runs/${run.id}/log`, { json: events })).status).toBe(201);
    }
    await close(run);
    return await logOf(run);
  }

  it("that has too much unread is closed with a reason that names how to resume", { tags: ["slow"] }, async () => {
    const run = await world.openRun();
    const all = await fillLog(run);
    const told: LogLine[] = [];
    const codes: number[] = [];
    while (codes.at(-1) !== 1000) {
      const { lines, code } = await messagesOf(socketTo(run, `?after=${told.length}`));
      told.push(...lines);
      codes.push(code);
    }
    expect(codes).toContain(1012);
    expect(told).toEqual(all);
  });

  it("whose client says what it has read stays open", { tags: ["slow"] }, async () => {
    const run = await world.openRun();
    const all = await fillLog(run);
    const socket = socketTo(run);
    socket.addEventListener("message", ({ data }) => socket.send(String(lineOf(String(data)).seq)));
    const { lines, code } = await messagesOf(socket);
    expect(code).toBe(1000);
    expect(lines).toEqual(all);
  });

  it("requires a credential for the run", async () => {
    const run = await world.openRun();
    const other = await world.openRun();
    await expect(messagesOf(socketTo({ ...run, token: "" }))).rejects.toThrow();
    await expect(messagesOf(socketTo({ ...run, token: other.token }))).rejects.toThrow();
  });

  it("that its client closes does not affect the run", async () => {
    const run = await world.openRun({ default_model: "up-1" });
    const socket = socketTo(run);
    await new Promise((resolve) => socket.addEventListener("message", resolve, { once: true }));
    socket.close();
    const { at } = await openGroup(run, { prompts: ["a"] });
    expect((await endOf(run, at)).json).toMatchObject({ status: "completed" });
  });
});
