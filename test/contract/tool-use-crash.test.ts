/** A gateway that is killed again and again while models use tools: what has ended is paid once, and no call is made twice that must not be. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { startByteUpstream, type ByteUpstream } from "../support/byte-upstream.ts";
import { startGateway, type Gateway } from "../support/gateway.ts";
import { answerAsModel } from "../support/tool-model.ts";
import { startToolServer, type ToolServer } from "../support/tool-server.ts";
import { endOf, openGroup } from "./following.ts";
import { answerOf, documentOf, type RunAccess } from "./world.ts";

const KILLS = 3;
const COUNT = 12;
const WIDTH = 4;
/** Longest until calls that were lost with the gateway go on, ms: a lease and some. */
const RECOVERY_MS_MAX = 120_000;

const PARAMETERS = { type: "object", properties: { word: { type: "string" } }, required: ["word"] };
const group = z.looseObject({
  results: z.array(z.string()),
  items: z.array(z.looseObject({ turns: z.int(), tool_calls: z.record(z.string(), z.int()) })),
});
const sent = z.object({ input: z.object({ word: z.string() }) });

describe("a gateway killed while models use tools", () => {
  let upstream: ByteUpstream;
  let tools: ToolServer;
  let gateway: Gateway;
  let dataDir: string;
  let run: RunAccess;
  const vars = (): Record<string, unknown> => ({
    ADMIN_KEY,
    KEY: "sk-provider-5f0c9d1e7ab24c60",
    TOOL_HOSTS: tools.host,
    UPSTREAMS: {
      up: {
        kind: "openai",
        base_url: `${upstream.origin}/v1`,
        api_key: "secret:KEY",
        max_attempts: KILLS + 2,
        prices: { "*": { input: 1, output: 1 } },
      },
    },
  });
  const ADMIN_KEY = randomUUID();
  beforeAll(async () => {
    [upstream, tools, dataDir] = await Promise.all([
      startByteUpstream(),
      startToolServer(),
      mkdtemp(join(tmpdir(), "fanout-disk-")),
    ]);
    upstream.serve(answerAsModel);
    gateway = await startGateway({ dataDir, vars: vars() });
  });
  afterAll(async () => {
    await gateway.stop();
    await Promise.all([upstream.stop(), tools.stop(), rm(dataDir, { recursive: true, force: true })]);
  });

  it(
    "answers all, calls no tool twice for one call, and its budget counts each request",
    { tags: ["slow"], timeout: 600_000 },
    async () => {
      const length = { name: "length", url: `http://${tools.host}/length`, parameters: PARAMETERS };
      const { id, token } = await gateway.openRun({ budget: { usd: 1 }, max_parallel: WIDTH, tools: [length] });
      run = { id, token, send: async (path, request) => answerOf(await gateway.fetch(path, { token, ...request })) };
      // Each word of all is another one: so a word says which call of which slot it is.
      const words = (slot: number): string[] =>
        Array.from({ length: 6 }, (_, at) => `${"abcdefghijkl"[slot]}${"x".repeat(at)}`);
      const prompts = Array.from({ length: COUNT }, (_, slot) => `How long are ${words(slot).join(", ")}?`);
      const { at } = await openGroup(run, { prompts, model: "up/m", tools: ["length"], max_tokens: 100 });
      for (let kill = 0; kill < KILLS; kill++) {
        const before = upstream.calls.length + tools.requests.length;
        await vi.waitUntil(() => upstream.calls.length + tools.requests.length >= before + 3, {
          interval: 5,
          timeout: RECOVERY_MS_MAX,
        });
        await gateway.kill();
        gateway = await startGateway({ dataDir, vars: vars() });
      }
      const { results, items } = group.parse((await endOf(run, at)).json);
      const made = tools.requests.map(({ body }) => sent.parse(JSON.parse(body)).input.word);
      // The model asks once for each word, whatever it is told: a word that was sent twice was a call made twice.
      expect(made.toSorted()).toEqual([...new Set(made)].toSorted());
      for (const [slot, result] of results.entries()) {
        const sum = words(slot).reduce((total, word) => total + word.length, 0);
        expect(result).toMatch(new RegExp(`^(?:${sum} letters|I could not: .*is not known.*)$`));
      }
      expect(items.map(({ turns, tool_calls: calls }) => [turns, calls["length"]])).toEqual(items.map(() => [4, 6]));
      const { budget } = await documentOf(run);
      expect(budget.usd?.reserved).toBe(0);
      // What a dead executor had may have been sent or not: it counts as sent.
      expect(budget.calls?.spent).toBeGreaterThanOrEqual(upstream.calls.length);
      expect(budget.calls?.spent).toBeLessThanOrEqual(upstream.calls.length + KILLS * WIDTH);
      expect(upstream.calls.length).toBeLessThanOrEqual(4 * COUNT + KILLS * WIDTH);
    },
  );
});
