/** Runs hold the id of their object in their own; those of earlier versions name it. */
import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env, exports } from "cloudflare:workers";
import { describe, expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import { batchOf, newBatchId } from "../../src/objects/address.ts";
import type { BatchRequest } from "../../src/batch/create.ts";
import { makeKeys } from "../../src/http/auth/keys.ts";
import { signRunToken } from "../../src/http/auth/token.ts";
import { skipTime } from "../support/objects-clock.ts";
import { ADMIN_KEY } from "../support/object-vars.ts";
import { namedSettings } from "../support/objects-direct.ts";
import { expectWhole, listRuns, openRun, prompts, TestRun } from "../support/objects-run.ts";

/** Opens a root run as a version before unique ids did: its object is found by its name, and so is the one directory. */
async function openNamed(): Promise<TestRun> {
  const id = `run_${crypto.randomUUID().replaceAll("-", "")}`;
  const settings = namedSettings(id);
  await runInDurableObject(env.DIRECTORY.getByName("runs"), (_, { storage }) => {
    storage.sql.exec("INSERT INTO run (id, day, held_nano_usd) VALUES (?, NULL, 0)", id);
  });
  await env.RUN.getByName(id).open(settings);
  const { signing } = await makeKeys({ adminKey: ADMIN_KEY });
  const { expiresAtMs } = settings;
  return new TestRun(id, await signRunToken(signing, { runId: id, depth: 0, expiresAtMs }));
}

const listed = async (id: string): Promise<boolean> => {
  const all: string[] = [];
  for (let query: string | null = "limit=100"; query !== null;) {
    const page = await listRuns(query);
    all.push(...page.ids);
    query = page.cursor === null ? null : `limit=100&cursor=${page.cursor}`;
  }
  return all.includes(id);
};

const opened = z.looseObject({ id: z.string(), token: z.string(), parent_id: z.string().nullable() });

const statusOf = async (path: string, token: string): Promise<number> => {
  const request = new Request(`http://gateway.test${path}`, { headers: { authorization: `Bearer ${token}` } });
  const response = await exports.default.fetch(request);
  await response.body?.cancel();
  return response.status;
};

describe("a run of an earlier version", () => {
  it("spends, is read and ends with the token that it was opened with", async () => {
    const run = await openNamed();
    expect((await run.query({ prompt: "one", model: "up/echo" })).text).toBe("one");
    expectWhole(await run.batch({ prompts: prompts(20), model: "up/echo" }), prompts(20));
    expect((await run.budget()).calls.spent).toBe(21);
    expect((await run.post(`/runs/${run.id}/close`, {})).status).toBe(200);
    expect((await run.document()).status).toBe("closed");
  });

  it("opens children of today, which return what they do not spend", async () => {
    const run = await openNamed();
    const child = opened.parse(await (await run.post("/runs", { budget: { usd: 0.5 } })).json());
    expect(child).toMatchObject({ id: expect.stringMatching(/^run_[0-9a-f]{64}$/), parent_id: run.id, region: null });
    const inside = new TestRun(child.id, child.token);
    const { usage } = await inside.query({ prompt: "two", model: "up/echo" });
    await run.post(`/runs/${child.id}/close`, {});
    const { usd } = await run.budget();
    expect(usd.reserved).toBe(0);
    expect(usd.spent).toBeCloseTo(usage.cost, 9);
  });

  it("is listed, and deleted with its retention", { tags: ["slow"] }, async () => {
    const run = await openNamed();
    expect(await listed(run.id)).toBe(true);
    skipTime(60_000);
    await runDurableObjectAlarm(run.object);
    skipTime(60_000);
    await runDurableObjectAlarm(run.object);
    expect(await run.object.document(null)).toBeNull();
    const rows = await env.DIRECTORY.getByName("runs").newest(null, 1_000);
    expect(rows.map(({ id }) => id)).not.toContain(run.id);
  });
});

describe("the id of a run", () => {
  it("holds the id of its object, so that no name is looked up", async () => {
    const run = await openRun();
    expect(run.id).toBe(`run_${String(run.object.id)}`);
    expect(run.object.id.name).toBeUndefined();
    expect(env.RUN.idFromString(run.id.slice("run_".length)).equals(run.object.id)).toBe(true);
  });

  it("of another class of objects, or of none, is the id of no run", async () => {
    const shelf = env.SHELF.newUniqueId().toString();
    for (const digits of [shelf, "0".repeat(64), "f".repeat(64)]) {
      expect(await statusOf(`/runs/run_${digits}`, ADMIN_KEY)).toBe(404);
      const { signing } = await makeKeys({ adminKey: ADMIN_KEY });
      const token = await signRunToken(signing, { runId: `run_${digits}`, depth: 0, expiresAtMs: Date.now() + 60_000 });
      expect(await statusOf("/run", token)).toBe(404);
    }
  });

  it("of another run is not found with this run's token", async () => {
    const mine = await openRun();
    const other = await openRun();
    expect((await mine.send("GET", `/runs/${other.id}`)).status).toBe(404);
    expect((await mine.send("GET", `/runs/${mine.id}`)).status).toBe(200);
  });
});

describe("the id of a batch", () => {
  const batchRequest: BatchRequest = {
    inputFileId: "file-of-nobody",
    url: "/v1/chat/completions",
    metadata: null,
    outputExpiresAfterS: null,
    strict: false,
  };

  it("holds the id of its object, which replies to the run of the batch only", async () => {
    const mine = await openRun();
    const other = await openRun();
    const id = newBatchId(env);
    const batch = batchOf(env, mine.id, id);
    expect(String(batch.id)).toBe(id.slice("batch_".length));
    await batch.open({ id, runId: mine.id, request: batchRequest, requestHash: "" });
    expect(await batch.read(mine.id)).toMatchObject({ id });
    expect(await batchOf(env, other.id, id).read(other.id)).toBeNull();
    expect(await batchOf(env, other.id, id).stop(other.id)).toBeNull();
    expect((await other.send("GET", `/v1/batches/${id}`)).status).toBe(404);
    expect((await mine.send("GET", `/v1/batches/${id}`)).status).toBe(200);
    await batch.destroy();
  });

  it("of an earlier version, or made of a key, names its object together with its run", async () => {
    const run = await openRun();
    const id = `batch_${"0".repeat(32)}`;
    await env.BATCH.getByName(`${run.id}/${id}`).open({ id, runId: run.id, request: batchRequest, requestHash: "" });
    expect((await run.send("GET", `/v1/batches/${id}`)).status).toBe(200);
    await batchOf(env, run.id, id).destroy();
  });
});

/** The hints with which the stubs of an object were taken, in order; null = without one. */
function hintsOf(objectId: () => string): () => (string | null)[] {
  const taken: { id: string; hint: string | null }[] = [];
  const prototype: object = Reflect.getPrototypeOf(env.RUN) ?? {};
  const plain: unknown = Reflect.get(prototype, "get");
  if (typeof plain !== "function") throw new Error("the runtime's namespaces have no get on their prototype");
  const get = function (this: object, id: object, options?: { locationHint?: string }): unknown {
    taken.push({ id: String(id), hint: options?.locationHint ?? null });
    return Reflect.apply(plain, this, options === undefined ? [id] : [id, options]);
  };
  Object.defineProperty(prototype, "get", { value: get, writable: true, configurable: true });
  onTestFinished(() => {
    Object.defineProperty(prototype, "get", { value: plain, writable: true, configurable: true });
  });
  return () => taken.filter(({ id }) => id === objectId()).map(({ hint }) => hint);
}

const objectIdOf = (run: TestRun | null): string => run?.id.slice("run_".length) ?? "";

describe("the region of a run", () => {
  it("is the hint with which its object is used first, and the child's that of its own object", async () => {
    let run: TestRun | null = null;
    const hints = hintsOf(() => objectIdOf(run));
    run = await openRun({ region: "eeur" });
    expect(hints()[0]).toBe("eeur");
    expect((await run.document()).region).toBe("eeur");

    let child: TestRun | null = null;
    const childHints = hintsOf(() => objectIdOf(child));
    child = await run.openChild();
    expect(childHints()[0]).toBe("eeur");
    child = await run.openChild({ region: "oc" });
    expect(childHints()[0]).toBe("oc");
  });

  it("is the client's, if the request names none and the platform reports where it is", async () => {
    const headers = { authorization: `Bearer ${ADMIN_KEY}`, "content-type": "application/json" };
    const init = { method: "POST", headers, body: "{}" };
    const open = async (cf: Record<string, string>): Promise<string | null> => {
      const response = await exports.default.fetch("http://fanout.test/runs", { ...init, cf });
      return z.object({ region: z.string().nullable() }).parse(await response.json()).region;
    };
    expect(await open({ continent: "SA" })).toBe("sam");
    expect(await open({ continent: "EU", longitude: "13.4" })).toBe("weur");
    expect(await open({ continent: "T1" })).toBeNull();
  });
});
