/** docs/deploy.md names the routes whose bodies Cloudflare may refuse first, and its probes exist. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { OPTION_NAMES } from "../../scripts/deploy/options.ts";
import { BODY_BYTES } from "../../src/contract/routes/table.ts";
import { ROOT } from "./page.ts";
import { rowsOf } from "./tables.ts";

/** Largest request body on Cloudflare's Free and Pro plans, documented. */
const PLATFORM_BODY_BYTES_MAX = 100e6;

describe("docs/deploy.md", () => {
  it("names every route whose body may be larger than Cloudflare lets through", async () => {
    const larger = Object.entries(BODY_BYTES).filter(([, bytes]) => bytes > PLATFORM_BODY_BYTES_MAX);
    const page = await readFile(join(ROOT, "docs/deploy.md"), "utf8");
    const section = /## Sizes of bodies\n(.*?)\n## /s.exec(page)?.[1] ?? "";
    const named = [...section.matchAll(/`((?:POST|PUT) \/[\w/]+)`/g)].map(([, route]) => route);
    expect(named).toEqual(larger.map(([route]) => route));
  });

  it("lists every option of npm run deploy", async () => {
    const rows = await rowsOf("docs/deploy.md", "option");
    const named = rows.map(([option = ""]) => /`(--[a-z0-9-]+)/.exec(option)?.[1] ?? option);
    expect(named).toEqual(OPTION_NAMES);
  });

  it("gives every statement about production a basis, and names only probes that there are", async () => {
    const rows = await rowsOf("docs/deploy.md", "statement");
    expect(rows.length).toBeGreaterThan(10);
    const probes = (await rowsOf("docs/probe.md", "probe")).map(([probe]) => probe);
    for (const [statement = "", basis = ""] of rows) {
      expect(basis, statement).toMatch(/^(measured|documented|reported|inferred)\b/);
      for (const [, probe] of basis.matchAll(/probe (\d+)/g)) expect(probes, statement).toContain(probe);
    }
  });
});
