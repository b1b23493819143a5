/** One bound on what a root run stores with all runs below it: rows, bodies in R2, files, contexts. */
import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import type { FileRecord } from "../../src/batch/files.ts";
import type { RunObject } from "../../src/index.ts";
import { RUN_FLOOR_BYTES, RUN_STORED_BYTES_MAX } from "../../src/limits.ts";
import { evict } from "../support/objects-direct.ts";
import { openRun, type TestRun } from "../support/objects-run.ts";
import { refusalOf } from "../support/objects-tree.ts";

const MB = 1024 * 1024;
const FULL = { status: 413, code: "payload_too_large" };

/** Leaves a root run so much room beside its rows and the floors of its children: as if its files had the rest. */
async function leave(run: TestRun, bytes: number, children = 0): Promise<void> {
  const rows = await runInDurableObject(run.object, (_: RunObject, { storage }) => storage.sql.databaseSize);
  expect(await run.object.filesStored(RUN_STORED_BYTES_MAX - rows - children * RUN_FLOOR_BYTES - bytes)).toBeNull();
}

const note = (run: TestRun, bytes: number) =>
  run.send("POST", `/runs/${run.id}/log`, { event_type: "note", output: "x".repeat(bytes) });

describe("what a run stores", () => {
  it("counts its files, so that neither a batch nor a child is taken beyond the bound", async () => {
    const run = await openRun({ budget: { usd: 1 } });
    expect(await run.object.filesStored(RUN_STORED_BYTES_MAX)).toMatchObject({ reason: "payload_too_large" });
    await leave(run, MB);
    expect((await note(run, 1_000)).status).toBeLessThan(300);
    expect(
      await refusalOf(await run.send("POST", "/batch", { prompts: ["x".repeat(MB)], model: "up/x" })),
    ).toMatchObject(FULL);
    await leave(run, RUN_FLOOR_BYTES - 1);
    expect(await refusalOf(await run.send("POST", "/runs", { budget: { usd: 0.1 } }))).toMatchObject(FULL);
    await run.object.filesStored(0);
    expect((await run.send("POST", "/runs", { budget: { usd: 0.1 } })).status).toBe(201);
  });

  it("has no room for a file that is announced to be larger than what is left: it is refused before it is read", async () => {
    const run = await openRun({ budget: { usd: 1 } });
    await leave(run, 2 * MB);
    // Were it read, it would be refused for what it is.
    const broken = `--b\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n${"x".repeat(3 * MB)}`;
    const headers = { "content-type": "multipart/form-data; boundary=b", "content-length": String(broken.length) };
    expect(await refusalOf(await run.sendText("/v1/files", broken, headers))).toMatchObject(FULL);
    expect((await run.object.filesStored(0)) ?? "kept").toBe("kept");
    expect(await refusalOf(await run.sendText("/v1/files", broken, headers))).toMatchObject({ status: 400 });
  });

  it("has no room for an upload that says it will be larger than what is left: none is created", async () => {
    const run = await openRun({ budget: { usd: 1 } });
    await leave(run, 10 * MB);
    const create = (bytes: number) =>
      run.send("POST", "/v1/uploads", { filename: "a", purpose: "user_data", bytes, mime_type: "text/plain" });
    // Its parts are there until its file is.
    expect(await refusalOf(await create(6 * MB))).toMatchObject(FULL);
    expect((await create(4 * MB)).status).toBe(200);
  });

  it("is one bound with its descendants, also after all of them have restarted", { tags: ["slow"] }, async () => {
    const root = await openRun({ budget: { usd: 1 }, max_depth: 3 });
    const child = await root.openChild({ budget: { usd: 0.5 } });
    const grandchild = await child.openChild({ budget: { usd: 0.2 } });
    await leave(root, 9 * MB, 1);
    for (let sent = 0; sent < 20; sent++) expect((await note(grandchild, 100_000)).status).toBeLessThan(300);
    // The step that the grandchild was allowed counts at the root.
    expect(await refusalOf(await child.send("POST", "/contexts", { text: "y".repeat(8 * MB) }))).toMatchObject(FULL);
    for (const run of [root, child, grandchild]) await evict(run.object);
    expect(await refusalOf(await child.send("POST", "/contexts", { text: "y".repeat(8 * MB) }))).toMatchObject(FULL);
    expect((await note(grandchild, 100_000)).status).toBeLessThan(300);
    await root.object.filesStored(0);
    expect((await child.send("POST", "/contexts", { text: "y".repeat(800_000) })).status).toBe(201);
  });

  it("counts what a batch writes before it is a file, of a descendant too, and refuses what clients would store then", async () => {
    const root = await openRun({ budget: { usd: 1 }, max_depth: 2 });
    const child = await root.openChild({ budget: { usd: 0.5 } });
    await leave(root, 6 * MB, 1);
    const shelf = env.SHELF.getByName(child.id);
    shelf.addBatch("b1", "file-1");
    await shelf.batchStored("b1", 3 * MB);
    expect((await child.send("POST", "/contexts", { text: "y".repeat(MB) })).status).toBe(201);
    // More than there is: it is written all the same, and leaves no room to anybody.
    await shelf.batchStored("b1", 40 * MB);
    expect(await refusalOf(await note(root, 1_000))).toMatchObject(FULL);
    expect(await refusalOf(await child.send("POST", "/contexts", { text: "z".repeat(MB) }))).toMatchObject(FULL);
    for (const run of [root, child]) await evict(run.object);
    expect(await refusalOf(await note(root, 1_000))).toMatchObject(FULL);
    // Its files are complete: they count as files.
    const file = {
      id: "file-2",
      bytes: 41 * MB,
      createdAtS: 1,
      expiresAtS: null,
      filename: "o",
      purpose: "batch_output",
    };
    await shelf.addFile(file as FileRecord);
    await shelf.batchStored("b1", 20_000);
    expect(await refusalOf(await note(root, 1_000))).toMatchObject(FULL);
    expect(await child.object.filesStored(0, true)).toBeNull();
    await root.object.filesStored(0);
    expect((await note(root, 1_000)).status).toBeLessThan(300);
  });

  it("needs no question to the root below the floor of a child", async () => {
    const root = await openRun({ budget: { usd: 1 } });
    const child = await root.openChild({ budget: { usd: 0.5 } });
    await leave(root, 1_000, 1);
    expect((await note(child, 1_000)).status).toBeLessThan(300);
    expect(await refusalOf(await note(child, RUN_FLOOR_BYTES - 5_000))).toMatchObject(FULL);
  });
});
