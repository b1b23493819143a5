/** `GET /runs/:id/page.html`: the page of a run as a file, opened by a real browser without a gateway. */
import type { Browser } from "playwright-core";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { usdText } from "../../ui/model/format.ts";
import { documentOf, startWorld, type RunAccess, type World } from "../contract/world.ts";
import { openPage } from "./browser.ts";
import { hasChromium, startBrowser } from "./chromium.ts";

let world: World;
let browser: Browser;
let folder: string;
beforeAll(async () => {
  if (!hasChromium) return;
  [world, browser] = await Promise.all([startWorld(), startBrowser()]);
  folder = await mkdtemp(join(tmpdir(), "fanout-page-"));
});
afterAll(async () => {
  await browser?.close();
  await world?.stop();
  if (folder !== undefined) await rm(folder, { recursive: true, force: true });
});

/** Saves the page of a run and opens the file. */
async function openSaved(run: RunAccess) {
  const saved = await run.send(`/runs/${run.id}/page.html`);
  expect([saved.status, saved.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
  expect(saved.headers.get("content-disposition")).toBe(`attachment; filename="${run.id}.html"`);
  expect(saved.text).not.toContain(run.token);
  const file = join(folder, `${run.id}.html`);
  await writeFile(file, saved.text);
  const url = pathToFileURL(file).href;
  const { page, faults } = await openPage(browser, url);
  // The file itself is the only thing that is loaded.
  return { page, faults: faults.filter((fault) => fault !== `request: ${url}`) };
}

describe.runIf(hasChromium)("the page of a run as a file", () => {
  it("shows what the run had spent and how its calls ended, and loads nothing", async () => {
    const run = await world.openRun({ name: "kept", default_model: "up-1", budget: { usd: 1 } });
    await run.send("/batch", { json: { prompts: ["a", "b", "{{status/400}} c"] } });
    await run.send(`/runs/${run.id}/close`, { method: "POST" });
    const { page, faults } = await openSaved(run);
    await expect.poll(() => page.getByRole("heading", { level: 1 }).innerText()).toContain("kept");
    const figures = page.getByRole("region", { name: "Progress" });
    expect(await figures.innerText()).toMatch(/completed\s+2[\s\S]*failed\s+1/);
    const { spent } = (await documentOf(run)).budget.usd;
    expect(await page.getByRole("region", { name: "Money" }).innerText()).toContain(usdText(spent));
    expect(await page.getByRole("region", { name: "Failures" }).innerText()).toContain("upstream_error");
    expect(await page.getByText("closed", { exact: true }).count()).toBeGreaterThan(0);
    expect(faults).toEqual([]);
  });

  it("runs nothing of what names, metadata and events contain", async () => {
    const hostile = `</script><script>alert(1)</script><!--<script><img src=x onerror="alert(2)">\u2028`;
    const run = await world.openRun({ name: hostile, default_model: "up-1", metadata: { [hostile]: hostile } });
    await run.send("/log", { json: { event_type: "note", output: hostile, data: { hostile } } });
    await run.send("/query", { json: { prompt: hostile, model: `up/${hostile}` } });
    const { page, faults } = await openSaved(run);
    await expect.poll(() => page.getByRole("heading", { level: 1 }).innerText()).toContain("</script>");
    expect(await page.locator("script").count()).toBe(2);
    expect(await page.locator("img").count()).toBe(0);
    expect(faults).toEqual([]);
  });

  it("shows its graphs", async () => {
    const run = await world.openRun({ default_model: "up-1" });
    await run.send("/dag", {
      json: {
        tasks: [
          { id: "one", prompt: "a" },
          { id: "two", prompt: "{{one.output}}" },
        ],
      },
    });
    const { page, faults } = await openSaved(run);
    const graph = page.getByRole("region", { name: "Graph" });
    await expect.poll(() => graph.innerText()).toMatch(/Critical path, .*: one → two/);
    expect(faults).toEqual([]);
  });

  it("is not for others", async () => {
    const [run, other] = [await world.openRun(), await world.openRun()];
    expect((await other.send(`/runs/${run.id}/page.html`)).status).toBe(404);
  });
});
