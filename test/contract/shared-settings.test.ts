/**
 * Settings and contents that the calls of one request share: sent once, stored once, and part of every upstream request. And every way
 * in takes at most three times the bytes sent on disk; `FANOUT_FIGURES=1` prints how many.
 */
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { once } from "node:events";
import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { mkdtemp, rm } from "node:fs/promises";
import { DatabaseSync } from "node:sqlite";
import { tmpdir } from "node:os";
import { expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import { startGateway, type GatewayRequest } from "../support/gateway.ts";
import { startR2Gateway } from "../support/r2-gateway.ts";
import { startUpstream } from "../support/upstream.ts";
import { answerOf, errorOf, startOwnGateway } from "./world.ts";

/** Bytes of all files under a folder, once what is in the logs of databases has been moved into them. */
function bytesUnder(folder: string): number {
  const listed = (): string[] =>
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => join(parentPath, name));
  for (const path of listed().filter((name) => name.endsWith(".sqlite"))) {
    const database = new DatabaseSync(path);
    database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    database.close();
  }
  // The memory that processes share to use a log is no content.
  const kept = listed().filter((name) => !name.endsWith("-shm"));
  return kept.reduce((sum, path) => sum + statSync(path).size, 0);
}

const SHARED = "x".repeat(900_000);
const CALLS = 24;
const each = <T>(of: (index: number) => T): T[] => Array.from({ length: CALLS }, (_, index) => of(index));

/** A gateway on a folder of its own, and a run of it without money: its calls are stored and refused. */
async function start(gatewayOn: typeof startR2Gateway = startGateway) {
  const upstream = await startUpstream();
  onTestFinished(() => upstream.stop());
  const dataDir = await mkdtemp(join(tmpdir(), "fanout-shared-"));
  onTestFinished(() => rm(dataDir, { recursive: true, force: true }));
  const up = { kind: "openai", base_url: upstream.baseUrl, models: ["up-*"], prices: { "*": { input: 1, output: 2 } } };
  const gateway = await gatewayOn({ dataDir, vars: { UPSTREAMS: { up } } });
  onTestFinished(() => gateway.stop());
  return { gateway, dataDir };
}

const WAYS: Record<string, { path: string; body: object }> = {
  "params under items with params of their own": {
    path: "/batch",
    body: { params: { stop: SHARED }, items: each((seed) => ({ prompt: "a", params: { seed } })) },
  },
  "a system message under items": { path: "/batch", body: { system: SHARED, items: each(() => ({ prompt: "a" })) } },
  "the prompt of n calls": { path: "/batch", body: { prompt: SHARED, n: CALLS } },
  "the messages of agents": {
    path: "/batch",
    body: { messages: [{ role: "user", content: SHARED }], agents: each((at) => ({ id: `a${at}` })) },
  },
  "params under tasks with params of their own": {
    path: "/dag",
    body: { params: { stop: SHARED }, tasks: each((seed) => ({ id: `t${seed}`, prompt: "a", params: { seed } })) },
  },
};

/** Prints bytes on disk ÷ bytes sent, if FANOUT_FIGURES is set. */
function noteRatio(way: string, ratio: number): void {
  if (process.env["FANOUT_FIGURES"] !== undefined) console.info(`${ratio.toFixed(2)} × on disk: ${way}`);
}

it.each(Object.entries(WAYS))(
  "takes at most three times the bytes sent on disk: %s",
  { tags: ["slow"] },
  async (way, { path, body }) => {
    const { gateway, dataDir } = await start();
    const run = await gateway.openRun({ budget: { usd: 0 } });
    const json = { model: "up-1", ...body };
    const answer = await gateway.fetch(path, { token: run.token, json });
    await answer.text();
    expect(answer.status).toBe(200);
    await gateway.stop();
    const ratio = bytesUnder(dataDir) / JSON.stringify(json).length;
    noteRatio(way, ratio);
    expect(ratio).toBeLessThan(3);
  },
);

/** Sends a request with the run's token, which must be taken, and returns its answer. */
type Send = (path: string, request: GatewayRequest) => Promise<unknown>;

const TEXT = "y".repeat(400_000);
const prompts = (count: number): string[] => Array.from({ length: count }, (_, at) => `${at} ${TEXT}`);
const LINES = prompts(10).map((content, at) => {
  const body = { model: "up-1", messages: [{ role: "user", content }] };
  return `${JSON.stringify({ custom_id: `c${at}`, method: "POST", url: "/v1/chat/completions", body })}\n`;
});
const identified = z.looseObject({ id: z.string() });

async function upload(send: Send, purpose: string): Promise<string> {
  const form = new FormData();
  form.set("purpose", purpose);
  form.set("file", new Blob(LINES), "lines.jsonl");
  return identified.parse(await send("/v1/files", { method: "POST", body: form })).id;
}

/** Every way in with contents of its own, in a gateway with R2. Each says how many bytes it has sent. */
const CONTENTS: Record<string, (send: Send) => Promise<number>> = {
  "single calls": async (send) => {
    for (const prompt of prompts(6)) await send("/query", { json: { model: "up-1", prompt } });
    return 6 * TEXT.length;
  },
  "calls at /v1 of a run that records": async (send) => {
    for (const content of prompts(6))
      await send("/v1/chat/completions", { json: { model: "up-1", messages: [{ role: "user", content }] } });
    return 6 * TEXT.length;
  },
  "a batch in rows": async (send) => {
    await send("/batch", { json: { model: "up-1", prompts: prompts(6) } });
    return 6 * TEXT.length;
  },
  "a batch with bodies in R2": async (send) => {
    await send("/batch", { json: { model: "up-1", prompts: prompts(30) } });
    return 30 * TEXT.length;
  },
  "a graph": async (send) => {
    await send("/dag", { json: { model: "up-1", tasks: prompts(6).map((prompt, at) => ({ id: `t${at}`, prompt })) } });
    return 6 * TEXT.length;
  },
  "contexts in rows": async (send) => {
    for (const text of prompts(6)) await send("/contexts", { json: { text } });
    return 6 * TEXT.length;
  },
  "a context in R2": async (send) => {
    await send("/contexts", { json: { text: prompts(6).join("\n") } });
    return 6 * TEXT.length;
  },
  "a file": async (send) => {
    await upload(send, "user_data");
    return LINES.join("").length;
  },
  "an upload in parts": async (send) => {
    const bytes = LINES.join("").length;
    const json = { filename: "lines.jsonl", purpose: "user_data", bytes, mime_type: "application/jsonl" };
    const { id } = identified.parse(await send("/v1/uploads", { json }));
    const part_ids: string[] = [];
    for (const half of [LINES.slice(0, 5), LINES.slice(5)]) {
      const form = new FormData();
      form.set("data", new Blob(half));
      part_ids.push(identified.parse(await send(`/v1/uploads/${id}/parts`, { method: "POST", body: form })).id);
    }
    await send(`/v1/uploads/${id}/complete`, { json: { part_ids } });
    return bytes;
  },
  "a file and its batch": async (send) => {
    const input_file_id = await upload(send, "batch");
    const json = { input_file_id, endpoint: "/v1/chat/completions", completion_window: "24h" };
    const { id } = identified.parse(await send("/v1/batches", { json }));
    const status = async (): Promise<unknown> =>
      z.looseObject({ status: z.string() }).parse(await send(`/v1/batches/${id}`, {})).status;
    await expect.poll(status, { timeout: 60_000 }).toBe("completed");
    return LINES.join("").length;
  },
  "events of a client": async (send) => {
    const output = TEXT.slice(0, 100_000);
    for (let at = 0; at < 20; at += 1) await send("/log", { json: { event_type: "note", output: `${at} ${output}` } });
    return 20 * output.length;
  },
};

it.each(Object.entries(CONTENTS))(
  "takes at most three times the bytes sent on disk: %s",
  { tags: ["slow"] },
  async (way, sendAll) => {
    const { gateway, dataDir } = await start(startR2Gateway);
    const run = await gateway.openRun({ budget: { usd: 100 }, ...(way.includes("records") ? { replay: "run" } : {}) });
    const sentBytes = await sendAll(async (path, request) => {
      const answer = await answerOf(await gateway.fetch(path, { token: run.token, ...request }));
      expect([path, answer.status < 300 ? "taken" : answer.text]).toEqual([path, "taken"]);
      return answer.json;
    });
    await gateway.stop();
    const ratio = bytesUnder(dataDir) / sentBytes;
    noteRatio(way, ratio);
    expect(ratio).toBeLessThan(3);
  },
);

it("sends every call with what it shares and what it has itself", async () => {
  const sent: unknown[] = [];
  const provider = createServer((request, response) => {
    void text(request).then((body) => {
      sent.push(JSON.parse(body));
      response.end(JSON.stringify({ choices: [{ message: { role: "assistant", content: "ok" } }] }));
    });
  });
  await once(provider.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => void provider.close());
  const address = provider.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const up = {
    kind: "openai",
    base_url: `http://127.0.0.1:${port}/v1`,
    models: ["up-1"],
    prices: { "*": { input: 1, output: 2 } },
  };
  const gateway = await startOwnGateway({ vars: { UPSTREAMS: { up } } });
  const run = await gateway.openRun({ budget: { usd: 1 } });
  const items = [0, 1, 2].map((seed) => ({ prompt: `p${seed}`, params: { seed, top_p: seed === 1 ? 0.5 : null } }));
  const json = { model: "up-1", params: { stop: ["END"], top_p: 0.25 }, items };
  const answer = await gateway.fetch("/batch", { token: run.token, json });
  expect(await answer.json()).toMatchObject({ results: ["ok", "ok", "ok"] });
  expect(sent).toHaveLength(3);
  for (const body of sent) expect(body).toMatchObject({ stop: ["END"] });
  expect(sent).toContainEqual(expect.objectContaining({ seed: 1, top_p: 0.5 }));
});

it("refuses to hash a long text once for each of many calls, and names what to do", { tags: ["slow"] }, async () => {
  const { gateway } = await start();
  const run = await gateway.openRun();
  const json = { model: "up-1", system: SHARED, prompts: Array.from({ length: 80 }, () => "a"), dedupe: true };
  const error = errorOf(await answerOf(await gateway.fetch("/batch", { token: run.token, json })));
  expect(error).toMatchObject({ code: "payload_too_large", message: expect.stringContaining("context") });
});
