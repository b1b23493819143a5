/**
 * A run whose rows a later version of the gateway has written, as after a deployment was rolled back. The test writes that version into the
 * run's database, because no later version exists.
 */
import { randomUUID } from "node:crypto";
import { readdirSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, it, onTestFinished } from "vitest";
import { runList } from "../../src/contract/runs.ts";
import { startGateway } from "../support/gateway.ts";
import { answerOf, errorOf } from "./world.ts";

const LATER = "99";

/** Writes the later version into the database of every run under a folder. Returns how many there are. */
function rollBack(folder: string): number {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".sqlite"));
  let changed = 0;
  for (const file of files) {
    const database = new DatabaseSync(join(folder, file));
    const tables = database.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all();
    if (tables.some(({ name }) => name === "meta")) {
      changed += Number(database.prepare("UPDATE meta SET value = ? WHERE key = 'schema'").run(LATER).changes);
    }
    database.close();
  }
  return changed;
}

it(
  "a run of later code is refused at once with what to do, on every way in, and is in the list; other runs go on",
  { tags: ["slow"] },
  async () => {
    const dataDir = await mkdtemp(join(tmpdir(), "fanout-newer-"));
    onTestFinished(() => rm(dataDir, { recursive: true, force: true }));
    const start = () => startGateway({ dataDir, vars });
    const vars = { ADMIN_KEY: randomUUID() };
    const before = await start();
    onTestFinished(() => before.stop());
    const later = await before.openRun({ budget: { usd: 1 } });
    await before.stop();
    expect(rollBack(dataDir)).toBe(1);

    const gateway = await start();
    onTestFinished(() => gateway.stop());
    const { token } = later;
    const post = (json: unknown) => ({ method: "POST", json, token });
    const chat = { model: "sim/echo", messages: [{ role: "user", content: "x" }] };
    const requests = {
      "/budget": { token },
      "/run": { token },
      "/query": post({ prompt: "x", model: "sim/echo" }),
      "/batch": post({ prompts: ["x", "y"], model: "sim/echo" }),
      "/v1/chat/completions": post(chat),
      "/runs": post({ name: "child" }),
      [`/runs/${later.id}`]: { token: gateway.adminKey },
      [`/runs/${later.id}/turn`]: { method: "POST", token: gateway.adminKey },
    };
    for (const [path, request] of Object.entries(requests)) {
      const answer = await answerOf(await gateway.fetch(path, request));
      const { code, message, retryable } = errorOf(answer);
      expect([path, answer.status, code, retryable]).toEqual([path, 503, "newer_storage", false]);
      expect(message).toMatch(/later version.* deploy that version/);
      expect([path, answer.headers.get("x-should-retry")]).toEqual([path, "false"]);
    }

    const other = await gateway.openRun({ budget: { usd: 1 } });
    const listed = await answerOf(await gateway.fetch("/runs", { token: gateway.adminKey }));
    const { data, unread } = runList().parse(listed.json);
    expect(data.map(({ id }) => id)).toEqual([other.id]);
    expect(unread).toMatchObject([{ id: later.id, code: "newer_storage", retryable: false }]);
    const answered = await answerOf(
      await gateway.fetch("/query", { method: "POST", json: { prompt: "x", model: "sim/echo" }, token: other.token }),
    );
    expect(answered.status).toBe(200);
  },
);
