/** A client that stops reading and stays: its call ends with the upstream's time, and what it reads later says so. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { budgetOf, logOf, post, startV1, type V1World } from "./v1-world.ts";

let world: V1World;
beforeAll(async () => void (world = await startV1({ timeout_ms: 3_000, max_attempts: 1 })));
afterAll(() => world.stop());

/** Requests of a stream that is edited, and of one that passes. */
const REQUESTS = {
  "that is edited": '{"model":"up-1","stream":true,"max_tokens":5,"messages":[]}',
  "that passes": '{"model":"up-1","stream":true,"max_tokens":5,"messages":[],"stream_options":{"include_usage":true}}',
};

const PIECE = `data: {"choices":[{"index":0,"delta":{"content":"${"a".repeat(4_000)}"}}]}\n\n`;

describe.each(Object.entries(REQUESTS))("a reader that stalls on a stream %s", (_, request) => {
  it(
    "is dropped: its call is settled, its upstream connection closed, and its stream ends with the reason",
    { tags: ["slow"] },
    async () => {
      const run = await world.gateway.openRun({ budget: { usd: 1 } });
      world.upstream.serve(async (_, reply) => {
        reply.begin({ headers: { "content-type": "text/event-stream" } });
        while (await reply.write(PIECE));
      });
      let text = "";
      const asked = post(world.gateway, "/v1/chat/completions", run.token, request, {
        take: (bytes) => void (text += bytes.toString()),
      });
      const response = await asked.response;
      response.pause();
      await expect.poll(() => world.upstream.calls[0]?.leftAtMs ?? null).not.toBeNull();
      await expect
        .poll(async () => (await budgetOf(world.gateway, run.token)).usd)
        .toMatchObject({ reserved: 0, spent: expect.any(Number) });
      const lines = (await logOf(world.gateway, run)).filter(({ event_type }) => event_type === "attempt_ended");
      expect(lines).toMatchObject([{ outcome: "unknown", code: "upstream_timeout", estimated: true }]);
      response.resume();
      expect((await asked.body).ended).toBe(true);
      const rest = text.replaceAll(PIECE, "");
      expect(rest).toMatch(/^data: \{"error":\{.*"code":"upstream_timeout"\}\}\n\n$/);
    },
  );

  it("at the end of a complete answer is charged for it before it resumes", async () => {
    const run = await world.gateway.openRun({ budget: { usd: 1 } });
    const usage = 'data: {"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5}}\n\n';
    const end = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n`;
    world.upstream.serve(async (_, reply) => {
      reply.begin({ headers: { "content-type": "text/event-stream" } });
      for (let at = 0; at < 50; at++) await reply.write(PIECE);
      await reply.write(`${end}${usage}data: [DONE]\n\n`);
      reply.end();
    });
    let text = "";
    const asked = post(world.gateway, "/v1/chat/completions", run.token, request, {
      take: (bytes) => void (text += bytes.toString()),
    });
    const response = await asked.response;
    response.pause();
    await expect
      .poll(async () => (await budgetOf(world.gateway, run.token)).usd)
      .toMatchObject({ reserved: 0, spent: 0.00002 });
    response.resume();
    expect((await asked.body).ended).toBe(true);
    const passed = request.includes("include_usage");
    const clients = passed ? `${end}${usage}data: [DONE]\n\n: fanout cost=0.00002\n\n` : `${end}data: [DONE]\n\n`;
    expect(text).toBe(PIECE.repeat(50) + clients);
  });
});
