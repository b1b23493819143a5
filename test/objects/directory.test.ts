import { evictDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, it } from "vitest";
import { listRuns, openRun } from "../support/objects-run.ts";

/** Ids of the seven runs of this file, in the order of their opening. */
const opened: string[] = [];

beforeAll(async () => {
  for (let count = 0; count < 7; count++) opened.push((await openRun({ name: `run ${count}` })).id);
});

describe("the list of runs", () => {
  it("shows the newest first, page by page, each once", async () => {
    const seen: string[] = [];
    let query = "limit=3";
    for (let hasMore = true; hasMore;) {
      const page = await listRuns(query);
      expect(page.ids.length).toBeLessThanOrEqual(3);
      seen.push(...page.ids);
      hasMore = page.hasMore;
      query = `limit=3&cursor=${page.cursor}`;
    }
    expect(seen).toEqual(opened.toReversed());
  });

  it("says that there is no more when a page ends with the last run", async () => {
    expect(await listRuns("limit=7")).toMatchObject({ hasMore: false, cursor: null });
    expect(await listRuns("limit=6")).toMatchObject({ hasMore: true, cursor: opened[1] });
  });

  it("does not move under a reader when a run is opened between two pages", async () => {
    const first = await listRuns("limit=3");
    const late = await openRun();
    const second = await listRuns(`limit=3&cursor=${first.cursor}`);
    expect([...first.ids, ...second.ids]).toEqual(opened.toReversed().slice(0, 6));
    expect((await listRuns("limit=1")).ids).toEqual([late.id]);
  });

  it("is empty after a run that it does not know", async () => {
    expect(await listRuns("cursor=run_unknown")).toEqual({ ids: [], hasMore: false, cursor: null });
  });

  it("outlives a restart of its object", async () => {
    const before = await listRuns("limit=100");
    await evictDurableObject(env.DIRECTORY.getByName("runs"));
    expect(await listRuns("limit=100")).toEqual(before);
  });
});
