/** `"traceparent": true`: an upstream gets the client's trace. Any other gets nothing of it. */
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { z } from "zod";
import { startByteUpstream, type ByteUpstream } from "../support/byte-upstream.ts";
import { startCollector } from "../support/collector.ts";
import { endOf, openGroup } from "./following.ts";
import { startWorld, type RunAccess } from "./world.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const CLIENT = { traceparent: `00-${TRACE}-00f067aa0ba902b7-01`, tracestate: "vendor=1" };
/** Long, for a machine that is busy: an export is due after five seconds. */
const EXPORTED_MS = 60_000;

const chat = z.object({ messages: z.array(z.object({ content: z.string() })) });
const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };

/** A gateway before a server that answers every chat under two names: `told` gets traces, `untold` does not. */
async function worldWith(vars: Record<string, unknown>): Promise<{ run: RunAccess; server: ByteUpstream }> {
  const server = await startByteUpstream();
  onTestFinished(() => server.stop());
  server.serve(({ body, headers }, reply) => {
    const content = chat.parse(JSON.parse(body.toString("utf8"))).messages.at(-1)?.content ?? "";
    // The first attempt of a prompt that says so fails, so that there is a second.
    const sends = server.calls.filter((call) => call.body.equals(body) && call.headers.host === headers.host).length;
    if (content.startsWith("again") && sends === 1) return reply.whole("{}", { status: 503 });
    const message = { role: "assistant", content: "yes" };
    const answer = { model: "m", choices: [{ index: 0, message, finish_reason: "stop" }], usage };
    reply.whole(JSON.stringify(answer), { headers: { "content-type": "application/json" } });
  });
  const provider = { kind: "openai", base_url: `${server.origin}/v1`, prices: { "*": { input: 1, output: 2 } } };
  const more = { told: { ...provider, traceparent: true }, untold: provider };
  const world = await startWorld(undefined, vars, more);
  onTestFinished(() => world.stop());
  return { run: await world.openRun({ budget: { usd: 1 } }), server };
}

/** A request of every kind to a model; seven attempts in all. */
async function askAll(run: RunAccess, model: string, headers: Record<string, string>): Promise<void> {
  const send = async (path: string, json: object, more = {}) => {
    const answer = await run.send(path, { json: { model, ...json }, headers: { ...headers, ...more } });
    expect([path, answer.status]).toEqual([path, 200]);
  };
  await send("/query", { prompt: "single" });
  await send("/query", { prompt: "stored" }, { "idempotency-key": `stored-${model}` });
  await send("/batch", { prompts: ["in a batch", `again, ${model}`] });
  // The last is made by a lane, or by a Workflow instance.
  const { at } = await openGroup(run, { model, prompts: ["detached"] }, headers);
  expect((await endOf(run, at)).status).toBe(200);
  await send("/v1/chat/completions", { messages: [{ role: "user", content: "relayed" }] });
}

const sentTo = (server: ByteUpstream) =>
  server.calls.map(({ headers }) => ({ parent: headers["traceparent"], state: headers["tracestate"] }));
const ATTEMPTS = 7;
const all = <T>(value: T): T[] => Array.from({ length: ATTEMPTS }, () => value);
const NOTHING = { parent: undefined, state: undefined };

describe("an upstream that gets traces", () => {
  it(
    "gets the client's as it came, where none are exported; any other upstream gets nothing",
    { tags: ["slow"] },
    async () => {
      const { run, server } = await worldWith({});
      await askAll(run, "told/m", CLIENT);
      expect(sentTo(server)).toEqual(all({ parent: CLIENT.traceparent, state: CLIENT.tracestate }));
      server.forget();
      await askAll(run, "untold/m", CLIENT);
      expect(sentTo(server)).toEqual(all(NOTHING));
      server.forget();
      await run.send("/query", { json: { model: "told/m", prompt: "invalid" }, headers: { traceparent: "00-0-0-01" } });
      expect(sentTo(server)).toEqual([NOTHING]);
    },
  );

  it("gets the span of each attempt as its parent, where these are exported", { tags: ["slow"] }, async () => {
    const collector = await startCollector();
    onTestFinished(() => collector.stop());
    const { run, server } = await worldWith({ OTLP_ENDPOINT: collector.url });
    await askAll(run, "told/m", CLIENT);
    await run.send(`/runs/${run.id}/close`, { method: "POST" });
    const attempts = () => collector.spans().filter(({ name }) => name === "chat m");
    await vi.waitFor(() => expect(attempts()).toHaveLength(ATTEMPTS), { timeout: EXPORTED_MS, interval: 100 });
    const exported = attempts().map(({ traceId, spanId }) => `00-${traceId}-${spanId}-01`);
    expect(
      sentTo(server)
        .map(({ parent }) => parent)
        .toSorted(),
    ).toEqual(exported.toSorted());
    expect(sentTo(server).filter(({ parent = "" }) => !parent.includes(TRACE))).toEqual([]);
    expect(new Set(exported).size).toBe(ATTEMPTS);
    expect(sentTo(server).map(({ state }) => state)).toEqual(all(CLIENT.tracestate));
  });
});
