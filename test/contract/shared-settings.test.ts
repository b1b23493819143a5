/** Settings and contents that the calls of one request share: sent once, stored once, and part of every upstream request. */
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { once } from "node:events";
import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { mkdtemp, rm } from "node:fs/promises";
import { DatabaseSync } from "node:sqlite";
import { tmpdir } from "node:os";
import { expect, it, onTestFinished } from "vitest";
import { startUpstream } from "../support/upstream.ts";
import { answerOf, errorOf, startOwnGateway } from "./world.ts";

/** Bytes of the databases under a folder, once what is in their logs has been moved into them. */
function bytesUnder(folder: string): number {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter(({ name }) =>
    name.endsWith(".sqlite"),
  );
  const paths = files.map(({ parentPath, name }) => join(parentPath, name));
  for (const path of paths) {
    const database = new DatabaseSync(path);
    database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    database.close();
  }
  return paths.reduce((sum, path) => sum + statSync(path).size, 0);
}

const SHARED = "x".repeat(900_000);
const CALLS = 24;
const each = <T>(of: (index: number) => T): T[] => Array.from({ length: CALLS }, (_, index) => of(index));

/** A gateway on a folder of its own, and a run of it without money: its calls are stored and refused. */
async function start() {
  const upstream = await startUpstream();
  onTestFinished(() => upstream.stop());
  const dataDir = await mkdtemp(join(tmpdir(), "fanout-shared-"));
  onTestFinished(() => rm(dataDir, { recursive: true, force: true }));
  const up = { kind: "openai", base_url: upstream.baseUrl, models: ["up-*"], prices: { "*": { input: 1, output: 2 } } };
  const gateway = await startOwnGateway({ dataDir, vars: { UPSTREAMS: { up } } });
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

it.each(Object.entries(WAYS))("takes at most three times the bytes sent on disk: %s", async (_, { path, body }) => {
  const { gateway, dataDir } = await start();
  const run = await gateway.openRun({ budget: { usd: 0 } });
  const json = { model: "up-1", ...body };
  const answer = await gateway.fetch(path, { token: run.token, json });
  await answer.text();
  expect(answer.status).toBe(200);
  await gateway.stop();
  expect(bytesUnder(dataDir) / JSON.stringify(json).length).toBeLessThan(3);
});

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

it("refuses to hash a long text once for each of many calls, and names what to do", async () => {
  const { gateway } = await start();
  const run = await gateway.openRun();
  const json = { model: "up-1", system: SHARED, prompts: Array.from({ length: 80 }, () => "a"), dedupe: true };
  const error = errorOf(await answerOf(await gateway.fetch("/batch", { token: run.token, json })));
  expect(error).toMatchObject({ code: "payload_too_large", message: expect.stringContaining("context") });
});
