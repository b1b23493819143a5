import { existsSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { ROUTES } from "../../../../src/contract/routes/table.ts";
import { batchBody } from "../../../../src/contract/batch.ts";
import { queryBody } from "../../../../src/contract/query.ts";
import { createApp } from "../../../../src/http/app.ts";
import { STUB_FILES } from "../../../../src/http/discovery/stub-files.mjs";
import { VERSION } from "../../../../src/version.ts";

const app = createApp();
const text = async () => await (await app.request("/llms.txt", {}, {})).text();

describe("GET /llms.txt", () => {
  it("has the parts of llmstxt.org in their order: title, summary, details, lists of links", async () => {
    const parts = (await text()).split(/\n## /);
    expect(parts[0]).toMatch(new RegExp(`^# fanout ${VERSION.replaceAll(".", "\\.")}\\n\\n> .+\\n\\n`));
    expect(parts[0]).not.toMatch(/\n#+ /);
    expect(parts.length).toBeGreaterThan(5);
    for (const part of parts.slice(1)) {
      const [, blank, ...lines] = part.trimEnd().split("\n");
      expect(blank).toBe("");
      for (const line of lines) expect(line).toMatch(/^- \[[^\]]+\]\(\/[^)\s]*\): \S/);
    }
  });

  it("names every public route, every field of a call and of a batch, and every stub", async () => {
    const page = await text();
    for (const { method, path } of ROUTES) {
      if (path.startsWith("/_probe/")) continue;
      expect(page).toContain(`[${method} ${path.replace(/:(\w+)/g, "{$1}")}]`);
    }
    for (const field of [...Object.keys(queryBody().shape), ...Object.keys(batchBody().shape)]) {
      expect(page).toContain(`- \`${field}\``);
    }
    for (const { lang, file } of STUB_FILES)
      expect(page).toContain(`- [${lang}](/stubs/${lang}): save it as \`${file}\``);
  });

  it("names guides that exist, and links to routes that answer", async () => {
    const page = await text();
    const guides = new Set([...page.matchAll(/\(((?:docs\/)?[\w-]+\.md)\)$/gm)].map(([, guide = ""]) => guide));
    expect(guides.size).toBeGreaterThan(15);
    for (const guide of guides) expect([guide, existsSync(guide)]).toEqual([guide, true]);
    const reference = await (await app.request("/docs", {}, {})).text();
    for (const [, path = "", anchor = ""] of page.matchAll(/\]\((\/[^)#]*)#?([^)]*)\)/g)) {
      expect([path, (await app.request(path, {}, {})).status]).toEqual([path, 200]);
      if (anchor !== "") expect(reference).toContain(`id="${anchor}"`);
    }
  });

  it("is short enough to be read whole", async () => {
    expect((await text()).length).toBeLessThan(32_000);
  });
});
