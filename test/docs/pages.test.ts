/** Runs every fenced code block of the documentation against a real gateway. README.md describes how pages are read. */
import { glob, readFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { parseEnv } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startGateway, type Gateway } from "../support/gateway.ts";
import { startR2Gateway } from "../support/r2-gateway.ts";
import { roleModel } from "../support/role-model/answer.ts";
import { startTools, type RoleTools } from "../support/role-model/tools.ts";
import { startUpstream, type TestUpstream } from "../support/upstream.ts";
import { blocksOf, stepsOf, type Step } from "./blocks.ts";
import { missingTools, ROOT, runPage } from "./page.ts";

const PAGES = ["README.md", "docs/*.md", "stubs/**/README.md", "examples/**/README.md"];
const pages: { page: string; missing: string[] }[] = [];
for await (const page of glob(PAGES, { cwd: ROOT })) {
  pages.push({ page, missing: missingTools(await readFile(join(ROOT, page), "utf8")) });
}
pages.sort((a, b) => (a.page < b.page ? -1 : 1));

/** Where pages of examples have the model with roles and its tools; in a test these have other addresses. */
const ROLE_MODEL = "http://127.0.0.1:8790/v1";
const ROLE_TOOLS = "127.0.0.1:8791";

let roles: { upstream: TestUpstream; tools: RoleTools };
beforeAll(async () => {
  roles = { upstream: await startUpstream(roleModel), tools: await startTools() };
});

const gateways = new Map<string, Promise<Gateway>>();
afterAll(async () => {
  for (const gateway of gateways.values()) await (await gateway).stop();
  await roles.upstream.stop();
  await roles.tools.stop();
});

/** A text with the addresses of this test's model with roles, and of its tools. */
function withRoles(text: string): string {
  return text.replaceAll(ROLE_MODEL, roles.upstream.baseUrl).replaceAll(ROLE_TOOLS, new URL(roles.tools.url).host);
}

/** The gateway of most pages; for those that use files one with R2, for those that name hosts of tools, or an upstream of the kind `pull`, one with these. */
function gatewayFor(text: string, steps: readonly Step[]): Promise<Gateway> {
  const usesFiles = /\/v1\/(files|uploads|batches)|\bfiles\.create|\bbatches\.create|fanout batch/.test(text);
  const settings = steps.filter((step) => step.kind === "configuration" && step.form === "env");
  const toolHosts =
    settings.map(({ block }) => parseEnv(block.code)["TOOL_HOSTS"] ?? "").find((hosts) => hosts !== "") ?? "";
  const upstreams = settings.map(({ block }) => parseEnv(block.code)["UPSTREAMS"] ?? "").find(isOwn) ?? "";
  const key = `${usesFiles} ${toolHosts} ${upstreams}`;
  const vars = {
    ...(toolHosts === "" ? {} : { TOOL_HOSTS: withRoles(toolHosts) }),
    ...(upstreams === "" ? {} : { UPSTREAMS: withRoles(upstreams) }),
  };
  const gateway = gateways.get(key) ?? (usesFiles ? startR2Gateway({ vars }) : startGateway({ vars }));
  gateways.set(key, gateway);
  return gateway;
}

/** Whether the page's own commands are the workers of an upstream, use its tape, or need a model that reads. */
function isOwn(upstreams: string): boolean {
  return (
    upstreams.includes(ROLE_MODEL) || upstreams.includes('"kind":"pull"') || upstreams.includes('"kind":"cassette"')
  );
}

describe.each(pages)("$page", ({ page, missing }) => {
  it.runIf(missing.length === 0)("works block by block", async () => {
    const text = await readFile(join(ROOT, page), "utf8");
    const steps = stepsOf(blocksOf(text));
    if (steps.length > 0) await runPage(page, await gatewayFor(text, steps), withRoles);
    // What is run throws where it fails; here is counted that nothing was left aside.
    const outputs = steps.filter((step) => step.kind === "run" && step.output !== null);
    expect(steps.length + outputs.length).toBe(blocksOf(text).length);
  });

  it("links only to files and headings that exist", async () => {
    const text = (await readFile(join(ROOT, page), "utf8")).replace(/^```.*?^```$/gms, "");
    const broken: string[] = [];
    for (const [, target = ""] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^https?:/.test(target)) continue;
      const [path = "", anchor] = target.split("#");
      const file = path === "" ? page : relative(ROOT, join(ROOT, dirname(page), path));
      const linked = await readFile(join(ROOT, file), "utf8").catch(() => null);
      if (linked === null || (anchor !== undefined && !anchorsOf(linked).has(anchor))) broken.push(target);
    }
    expect(broken).toEqual([]);
  });
});

it("finds the pages that there are", () => {
  const names = pages.map(({ page }) => page);
  for (const page of ["README.md", "docs/batch.md", "stubs/python/README.md"]) expect(names).toContain(page);
});

/** The anchors of a page's headings, as GitHub names them. */
function anchorsOf(markdown: string): Set<string> {
  const headings = [...markdown.matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) => heading);
  return new Set(
    headings.map((heading) =>
      heading
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, "")
        .replaceAll(" ", "-"),
    ),
  );
}
