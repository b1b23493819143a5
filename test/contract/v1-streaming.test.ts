/** Streams through the gateway: each event at once, none to another, no more in flight than its reader takes. */
import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { budgetOf, logOf, post, residentMib, startV1, type V1World } from "./v1-world.ts";

let world: V1World;
beforeAll(async () => void (world = await startV1()));
beforeEach(() => world.upstream.forget());
afterAll(() => world.stop());

const EVENTS = { headers: { "content-type": "text/event-stream" } };
const DONE = "data: [DONE]\n\n";
const USAGE = 'data: {"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}\n\n';
const LAST = 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n';
const event = (content: string) => `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`;
const COST = ": fanout cost=0.00002\n\n";
const fields = { model: "up-1", stream: true, max_tokens: 50 };
const silent = (content: string) => JSON.stringify({ ...fields, messages: [{ role: "user", content }] });
const asking = (content: string) =>
  JSON.stringify({ ...fields, stream_options: { include_usage: true }, messages: [{ role: "user", content }] });

/** The two ways of a stream through the gateway: how a client asks for each, and how its stream ends. */
const PATHS = [
  { path: "that is edited", chat: silent, end: LAST + DONE },
  { path: "that passes", chat: asking, end: LAST + USAGE + DONE + COST },
];

/** The request of the kind above. */
const promptOf = (body: Buffer): string => /"content":"([^"]*)"/.exec(body.toString("utf8"))?.[1] ?? "";

function gate(): { opened: Promise<void>; open: () => void } {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  return { opened: promise, open: () => resolve(undefined) };
}

describe("a stream", () => {
  it.each([
    ["/v1/chat/completions", silent("a"), event("x")],
    ["/v1/chat/completions", asking("a"), event("x")],
    [
      "/v1/completions",
      '{"model":"up-1","stream":true,"prompt":"a","max_tokens":5}',
      'data: {"choices":[{"text":"x"}]}\n\n',
    ],
    [
      "/v1/responses",
      '{"model":"up-1","stream":true,"input":"a","max_output_tokens":50}',
      'event: a\ndata: {"type":"response.output_text.delta","delta":"x"}\n\n',
    ],
    [
      "/v1/messages",
      '{"model":"claude-1","stream":true,"max_tokens":5,"messages":[]}',
      'event: ping\ndata: {"type":"ping"}\n\n',
    ],
  ])("of %s delivers each event to its client before the upstream sends the next", async (path, request, piece) => {
    const { token } = await world.gateway.openRun({ budget: { usd: 1 } });
    const gates = Array.from({ length: 20 }, gate);
    world.upstream.serve(async (_, reply) => {
      reply.begin(EVENTS);
      for (const [at, { opened }] of gates.entries()) {
        await opened;
        await reply.write(piece.replace("x", String(at)));
      }
      reply.end();
    });
    let text = "";
    const asked = post(world.gateway, path, token, request, { take: (bytes) => void (text += bytes.toString()) });
    await asked.response;
    for (const [at, { open }] of gates.entries()) {
      expect(text).toBe(
        gates
          .slice(0, at)
          .map((_, before) => piece.replace("x", String(before)))
          .join(""),
      );
      const length = text.length;
      open();
      await expect.poll(() => text.length, { interval: 2 }).toBeGreaterThan(length);
    }
    await asked.body;
  });
});

describe.each(PATHS)("a stream $path", ({ chat, end }) => {
  it("does not mix with 1,000 concurrent streams", { tags: ["slow"] }, async () => {
    const OPEN = 500;
    const runs = await Promise.all([0, 1].map(() => world.gateway.openRun({ budget: { usd: 10 }, max_parallel: 0 })));
    const all = gate();
    let arrived = 0;
    world.upstream.serve(async ({ body }, reply) => {
      const prompt = promptOf(body);
      reply.begin(EVENTS);
      await reply.write(event(`${prompt} begins`));
      arrived += 1;
      if (arrived === 2 * OPEN) all.open();
      await all.opened;
      for (let at = 0; at < 10; at++) await reply.write(event(`${prompt} ${at}`));
      await reply.write(LAST + USAGE + DONE);
      reply.end();
    });
    const asked = runs.flatMap(({ token }, run) =>
      Array.from({ length: OPEN }, (_, at) => {
        const prompt = `call ${run}-${at}`;
        return { prompt, body: post(world.gateway, "/v1/chat/completions", token, chat(prompt)).body };
      }),
    );
    for (const { prompt, body } of asked) {
      const { bytes, ended } = await body;
      const words = Array.from({ length: 10 }, (_, at) => event(`${prompt} ${at}`)).join("");
      expect([bytes.toString(), ended]).toEqual([event(`${prompt} begins`) + words + end, true]);
    }
    expect(arrived).toBe(1_000);
    for (const { token } of runs) {
      await expect.poll(async () => (await budgetOf(world.gateway, token)).usd.reserved).toBe(0);
      expect((await budgetOf(world.gateway, token)).usd.spent).toBe((OPEN * 20_000) / 1e9);
    }
  });

  it("of 10,000 chunks to a slow reader slows the upstream down, in bounded memory", { tags: ["slow"] }, async () => {
    const { token } = await world.gateway.openRun({ budget: { usd: 1 } });
    const CHUNKS = 10_000;
    // 160 MB in all: held in memory they would be seen above what garbage collection leaves from one moment to the next.
    const piece = event("0123456789".repeat(1_600));
    let made = 0;
    world.upstream.serve(async (_, reply) => {
      reply.begin(EVENTS);
      for (; made < CHUNKS; made++) await reply.write(piece);
      await reply.write(LAST + USAGE + DONE);
      reply.end();
    });
    const memory = async () => residentMib(await readFile(`/proc/${world.gateway.pid}/status`, "utf8"));
    // What the process needs for any such stream, it has after the first: its heap has grown to its working size.
    await post(world.gateway, "/v1/chat/completions", token, chat("a"), { take: () => undefined }).body;
    expect(made).toBe(CHUNKS);
    made = 0;
    const before = await memory();
    let read = 0;
    const asked = post(world.gateway, "/v1/chat/completions", token, chat("a"), {
      take: (bytes) => void (read += bytes.length),
    });
    const response = await asked.response;
    response.pause();
    // What waits are the buffers of four sockets, whose sizes the system chooses, and no more with time.
    let held = -1;
    while (held !== made) {
      held = made;
      await new Promise((resolve) => setTimeout(resolve, 400));
    }
    expect(held).toBeLessThan(CHUNKS);
    const ahead = [made * piece.length - read];
    let peak = await memory();
    for (let round = 0; round < 20; round++) {
      response.resume();
      await new Promise((resolve) => setTimeout(resolve, 3));
      response.pause();
      await new Promise((resolve) => setTimeout(resolve, 20));
      ahead.push(made * piece.length - read);
      peak = Math.max(peak, await memory());
    }
    response.resume();
    const { ended } = await asked.body;
    peak = Math.max(peak, await memory());
    expect([ended, made, read]).toEqual([true, CHUNKS, CHUNKS * piece.length + end.length]);
    expect(Math.max(...ahead)).toBeLessThan((await socketBytesMax()) + 4e6);
    expect(peak - before).toBeLessThan(80);
    await expect
      .poll(async () => (await budgetOf(world.gateway, token)).usd)
      .toMatchObject({ spent: 0.00004, reserved: 0 });
  });
});

/** The most that the system lets wait in the sockets of two connections, bytes: each has a buffer at either end. */
async function socketBytesMax(): Promise<number> {
  let bytes = 0;
  for (const name of ["tcp_rmem", "tcp_wmem"]) {
    const [, , max] = (await readFile(`/proc/sys/net/ipv4/${name}`, "utf8")).trim().split(/\s+/);
    bytes += 2 * Number(max);
  }
  return bytes;
}

describe.each(PATHS)("a client that disconnects from", ({ path, chat }) => {
  it.each([
    ["before the headers", 0],
    ["before the first event", 1],
    ["in the middle, while the upstream is silent", 2],
  ])(`a stream ${path}, %s, closes the upstream's connection, and is charged at its reservation`, async (_, step) => {
    const run = await world.gateway.openRun({ budget: { usd: 1 } });
    world.upstream.serve(async (_call, reply) => {
      if (step > 0) reply.begin(EVENTS);
      if (step > 1) await reply.write(event("a"));
    });
    let text = "";
    const asked = post(world.gateway, "/v1/chat/completions", run.token, chat("a"), {
      take: (bytes) => void (text += bytes.toString()),
    });
    await expect.poll(() => world.upstream.calls.length).toBe(1);
    if (step > 0) await asked.response;
    if (step > 1) await expect.poll(() => text).toBe(event("a"));
    const { reserved } = (await budgetOf(world.gateway, run.token)).usd;
    expect(reserved).toBeGreaterThan(0);
    asked.leave();
    await expect.poll(() => world.upstream.calls[0]?.leftAtMs ?? null, { interval: 10 }).not.toBeNull();
    await expect
      .poll(async () => (await budgetOf(world.gateway, run.token)).usd)
      .toMatchObject({ spent: reserved, reserved: 0 });
    const lines = (await logOf(world.gateway, run)).filter(({ event_type }) => event_type === "attempt_ended");
    expect(lines).toMatchObject([{ outcome: "unknown", code: "cancelled", estimated: true }]);
    expect(world.upstream.calls).toHaveLength(1);
  });

  it(`a stream ${path}, in a flood of events, stops the upstream as soon`, async () => {
    const { token } = await world.gateway.openRun({ budget: { usd: 1 } });
    let going = true;
    world.upstream.serve(async (_, reply) => {
      reply.begin(EVENTS);
      while (going) going = await reply.write(event("a".repeat(1_000)));
    });
    let read = 0;
    const asked = post(world.gateway, "/v1/chat/completions", token, chat("a"), {
      take: (bytes) => void (read += bytes.length),
    });
    await expect.poll(() => read).toBeGreaterThan(100_000);
    asked.leave();
    await expect.poll(() => going, { interval: 10 }).toBe(false);
    await expect.poll(async () => (await budgetOf(world.gateway, token)).usd.reserved).toBe(0);
  });
});
