/** The guide names every class of work with its share. */
import { readFile } from "node:fs/promises";
import { expect, it } from "vitest";
import { AGEING_MS } from "../../src/run/queue/queue.ts";
import { CLASS_SHARES } from "../../src/gate/runs/share.ts";

it("docs/upstreams.md has the shares of the gate, and the time after which a call gains a level", async () => {
  const guide = await readFile(new URL("../../docs/upstreams.md", import.meta.url), "utf8");
  const rows = [...guide.matchAll(/^\| `(\w+)` \|.*\| (\d+) % \|$/gm)].map(([, name = "", share]) => [
    name,
    Number(share),
  ]);
  expect(Object.fromEntries(rows)).toEqual(CLASS_SHARES);
  expect(guide).toContain(`every ${AGEING_MS / 1_000} s that it waits`);
});
