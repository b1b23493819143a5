/** Tokens of pull workers: the work of one run, and nothing else. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { BODY_BYTES } from "../../src/contract/routes/table.ts";
import {
  answerOf,
  documentOf,
  errorOf,
  groupOf,
  startWorld,
  type Answer,
  type RunAccess,
  type World,
} from "./world.ts";

const UPSTREAMS = { sim: { kind: "simulated" }, codex: { kind: "pull", models: ["agent"] } };

let world: World;
beforeAll(async () => void (world = await startWorld(undefined, { UPSTREAMS })));
afterAll(() => world.stop());

const granted = z.strictObject({
  object: z.literal("worker_token"),
  run_id: z.string(),
  token: z.string(),
  expires_at: z.iso.datetime(),
});

async function tokenOf(run: RunAccess, by: RunAccess = run): Promise<z.infer<typeof granted>> {
  const answer = await by.send(`/runs/${run.id}/worker-token`, { method: "POST" });
  expect([answer.status, answer.text]).toEqual([201, expect.any(String)]);
  return granted.parse(answer.json);
}

const as = async (token: string, path: string, json?: unknown, method = "POST"): Promise<Answer> =>
  answerOf(await world.gateway.fetch(path, { method, token, ...(json === undefined ? {} : { json }) }));

const items = z.looseObject({ items: z.array(z.looseObject({ lease_id: z.string(), prompt: z.string() })) });

describe("a worker token", () => {
  it("claims, keeps and completes the items of its run, and expires with it", async () => {
    const run = await world.openRun({ expires_in_s: 600 });
    const { token, run_id, expires_at } = await tokenOf(run);
    expect([run_id, expires_at]).toEqual([run.id, (await documentOf(run))["expires_at"]]);
    const answered = run.send("/batch", { json: { model: "codex/agent", prompts: ["a"] } });
    const claimed = items.parse((await as(token, `/runs/${run.id}/claim`, { wait_ms: 20_000 })).json);
    const [{ lease_id = "" } = {}] = claimed.items;
    const kept = await as(token, `/runs/${run.id}/heartbeat`, { lease_ids: [lease_id] });
    expect(kept.json).toMatchObject({ leases: [{ state: "active" }] });
    expect((await as(token, `/runs/${run.id}/complete`, { lease_id, text: "done" })).status).toBe(200);
    expect(groupOf(await answered).results).toEqual(["done"]);
  });

  it("may use no other route, whatever the route does", async () => {
    const run = await world.openRun();
    const { token } = await tokenOf(run);
    const reads = [
      "/run",
      "/budget",
      "/usage",
      "/runs",
      "/runs/:id",
      "/runs/:id/log",
      "/runs/:id/events",
      "/v1/models",
    ];
    const routes = [...Object.keys(BODY_BYTES), ...reads.map((path) => `GET ${path}`), "DELETE /runs/:id"];
    const work = ["claim", "heartbeat", "complete"].map((step) => `POST /runs/:id/${step}`);
    for (const route of routes.filter((each) => !work.includes(each))) {
      const [method = "", path = ""] = route.split(" ");
      const answer = await as(token, path.replace(":id", run.id), method === "POST" ? {} : undefined, method);
      expect([route, answer.status], answer.text).toEqual([route, 403]);
    }
    expect((await documentOf(run)).status).toBe("active");
  });

  it("has no power over another run: neither its parent, nor its child, nor a path that only means its own", async () => {
    const run = await world.openRun();
    const opened = z.looseObject({ id: z.string(), token: z.string() });
    const child = opened.parse((await run.send("/runs", { json: {} })).json);
    const { token } = await tokenOf(run);
    for (const path of [
      `/runs/${child.id}/claim`,
      `/runs/${run.id}%2Fclaim`,
      `/runs/%72un/claim`,
      `//runs/${run.id}/claim`,
    ]) {
      expect([403, 404, 405]).toContain((await as(token, path, {})).status);
    }
    const ofChild = await tokenOf({ ...run, id: child.id }, run);
    expect((await as(ofChild.token, `/runs/${run.id}/claim`, {})).status).toBe(403);
    expect((await as(ofChild.token, `/runs/${child.id}/claim`, {})).status).toBe(200);
  });

  it("is no run token under another prefix, and a run token is none", async () => {
    const run = await world.openRun();
    const { token } = await tokenOf(run);
    const disguised = token.replace("fo-pull-", "fo-run-");
    expect(errorOf(await as(disguised, "/query", { prompt: "one" })).code).toBe("invalid_api_key");
    expect((await as(disguised, `/runs/${run.id}/claim`, {})).status).toBe(401);
    const wrong = run.token.replace("fo-run-", "fo-pull-");
    expect((await as(wrong, `/runs/${run.id}/claim`, {})).status).toBe(401);
    expect((await as(`${token}x`, `/runs/${run.id}/claim`, {})).status).toBe(401);
  });

  it("ends with its run, and is given to nobody who may not read the run", async () => {
    const run = await world.openRun();
    const other = await world.openRun();
    expect((await other.send(`/runs/${run.id}/worker-token`, { method: "POST" })).status).toBe(404);
    const { token } = await tokenOf(run);
    await run.send(`/runs/${run.id}/close`, { method: "POST" });
    expect((await as(token, `/runs/${run.id}/claim`, {})).status).toBe(401);
    expect((await run.send(`/runs/${run.id}/worker-token`, { method: "POST" })).status).toBe(401);
  });
});
