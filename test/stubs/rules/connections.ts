/** Lost connections: the request is repeated under the same key, so that the call is made and paid once. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { startFaultyProxy, type Fate } from "../../support/faulty-proxy.ts";
import { keysOf, text, texts, type Script } from "../script.ts";

export function connections(script: Script): void {
  it.each<[string, Fate[], string[]]>([
    ["dropped before the gateway receives the request", ["drop", "drop"], ["query", "once"]],
    ["reset before the answer to a query", ["deafen", "deafen", "deafen", "deafen"], ["query", "once"]],
    ["cut in the middle of a query's answer", ["cut"], ["query", "once"]],
    ["reset before a batch's answer", ["deafen"], ["batch", "once", "too"]],
    ["cut in the middle of a batch's answer", ["cut", "cut"], ["batch", "once", "too"]],
    ["closed in the middle of a batch's answer", ["end"], ["batch", "once", "too"]],
  ])(
    "repeats a request under the same key if the connection is %s, and the call is made once",
    async (_, fates, args) => {
      const proxy = await script.proxyTo(fates);
      const env = { FANOUT_URL: proxy.url };
      const prompts = args.slice(1);
      expect(texts(await script.drive(args, env))).toEqual(prompts);
      const keys = keysOf(proxy);
      expect(keys).toHaveLength(fates.length + 1);
      expect(new Set(keys).size).toBe(1);
      expect(keys[0]).toMatch(/^[\x21-\x7e]{16,255}$/);
      expect(new Set(proxy.requests.map(({ body }) => body)).size).toBe(1);
      expect(script.world.upstream.counters.sends).toEqual(new Map(prompts.map((prompt) => [prompt, 1])));
    },
  );

  it("gives up after four retries", async () => {
    const proxy = await script.proxyTo(["drop", "drop", "drop", "drop", "drop"]);
    expect(await script.drive(["query", "p"], { FANOUT_URL: proxy.url })).toEqual([
      { kind: "failure", code: "unreachable", status: null, retryable: true },
    ]);
    expect(proxy.requests).toHaveLength(5);
  });

  it("waits for a gateway that is starting", async () => {
    const port = await freePort();
    const running = script.drive(["query", "p"], { FANOUT_URL: `http://127.0.0.1:${port}` });
    const proxy = await startFaultyProxy(script.world.gateway.url, [], { port, delayMs: 1_500 });
    onTestFinished(() => proxy.stop());
    expect(await running).toEqual([text("p")]);
  });

  it("uses a fresh key for each call, and repeats no request that got an answer", async () => {
    const proxy = await script.proxyTo([]);
    const env = { FANOUT_URL: proxy.url };
    await script.drive(["query", "p"], env);
    await script.drive(["query", "p"], env);
    await script.drive(["query", "{{status/400}}"], env);
    expect(new Set(keysOf(proxy)).size).toBe(3);
    expect(proxy.requests).toHaveLength(3);
  });
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
