/** The list of runs where objects of some runs cannot be read, on the real runtime. */
import { runInDurableObject } from "cloudflare:test";
import { env, exports } from "cloudflare:workers";
import { expect, it, vi } from "vitest";
import { directoryOf } from "../../src/objects/address.ts";
import { runList } from "../../src/contract/runs.ts";
import { LIST_OPENING_MS } from "../../src/limits.ts";
import { crash } from "../support/objects-direct.ts";
import { ADMIN_KEY } from "../support/object-vars.ts";
import { openRun, type TestRun } from "../support/objects-run.ts";

async function listed() {
  const request = new Request("http://gateway.test/runs?limit=100&name=listed", {
    headers: { authorization: `Bearer ${ADMIN_KEY}` },
  });
  const response = await exports.default.fetch(request);
  expect(response.status).toBe(200);
  const { data, unread } = runList().parse(await response.json());
  const rows = [
    ...data.map(({ id }) => [id, "document"] as const),
    ...unread.map(({ id, code }) => [id, code] as const),
  ];
  return new Map(rows);
}

/** The run's place in the list becomes that of one which was opened long ago. */
async function age(run: TestRun): Promise<void> {
  const directory = directoryOf(env, { id: run.id, holder: null });
  const opened = (Date.now() - 2 * LIST_OPENING_MS) * 1_000;
  await runInDurableObject(env.DIRECTORY.get(directory.id), (_, { storage }) => {
    storage.sql.exec("UPDATE run SET opened = ? WHERE id = ?", opened, run.id);
  });
}

it(
  "a list says of a run whose rows newer code has written that it did, and takes off the one that has no rows",
  { tags: ["slow"] },
  async () => {
    const runs = [];
    for (let n = 0; n < 4; n++) runs.push(await openRun({ name: `listed ${n}` }));
    const [first, newer, emptied, last] = runs;
    if (first === undefined || newer === undefined || emptied === undefined || last === undefined)
      throw new Error("no runs");
    await runInDurableObject(newer.object, (_, { storage }) => {
      storage.sql.exec("UPDATE meta SET value = '99' WHERE key = 'schema'");
    });
    await crash(newer.object);
    await runInDurableObject(emptied.object, async (_, { storage }) => {
      await storage.deleteAlarm();
      await storage.deleteAll();
    });
    await crash(emptied.object);
    await age(emptied);
    const errors = vi.spyOn(console, "error").mockImplementation(() => {});
    const seen = await listed();
    expect(runs.map(({ id }) => seen.get(id))).toEqual(["document", "newer_storage", "deleted", "document"]);
    await expect.poll(async () => (await listed()).has(emptied.id)).toBe(false);
    expect((await listed()).get(newer.id)).toBe("newer_storage");
    errors.mockRestore();
    // The files after this one have the same list.
    await directoryOf(env, { id: newer.id, holder: null }).forget(newer.id);
  },
);
