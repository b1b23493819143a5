/** The reference at `/docs` in a real browser. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startWorld, type World } from "../contract/world.ts";
import { openPage } from "./browser.ts";
import { hasChromium, startBrowser } from "./chromium.ts";

let world: World;
let browser: Browser;
beforeAll(async () => {
  if (!hasChromium) return;
  [world, browser] = await Promise.all([startWorld(), startBrowser()]);
});
afterAll(async () => {
  await browser?.close();
  await world?.stop();
});

describe.runIf(hasChromium)("the reference", () => {
  it("begins on the first screen with a call and a list of calls, which work as they are shown", async () => {
    const { page, faults } = await openPage(browser, `${world.gateway.url}/docs`);
    const run = await world.openRun({ default_model: "up-1" });
    const shown = page.locator("pre");
    const routes = ["/query", "/batch"];
    expect(await shown.count()).toBe(routes.length);
    for (const [at, route] of routes.entries()) {
      const example = shown.nth(at);
      const text = await example.innerText();
      expect(text).toContain(`$FANOUT_URL${route} `);
      const box = await example.boundingBox();
      expect((box?.y ?? Infinity) + (box?.height ?? 0)).toBeLessThan(900);
      const json: unknown = JSON.parse(/-d '(.*)'/.exec(text)?.[1] ?? "");
      expect((await run.send(route, { json })).status).toBe(200);
    }
    expect(await page.getByText(/docs\/batch\.md/).count()).toBeGreaterThan(0);
    expect(faults).toEqual([]);
  });

  it("leads by keyboard from its beginning to a route, and to the document for programs", async () => {
    const { page, faults } = await openPage(browser, `${world.gateway.url}/docs`);
    await page.getByRole("link", { name: "POST /batch" }).first().focus();
    await page.keyboard.press("Enter");
    expect(new URL(page.url()).hash).toBe("#post-batch");
    const heading = page.locator("#post-batch");
    await expect.poll(async () => (await heading.boundingBox())?.y ?? Infinity).toBeLessThan(450);
    await page.getByRole("link", { name: "/openapi.json" }).first().click();
    await page.waitForURL(`${world.gateway.url}/openapi.json`);
    // A browser may ask for an icon beside a document that names none, and tells its console if there is none.
    const icon = await page.request.get(`${world.gateway.url}/favicon.ico`);
    expect([icon.status(), icon.headers()["content-type"]]).toEqual([200, "image/svg+xml"]);
    expect(faults).toEqual([]);
  });

  it("finds routes, schemas and guides by words, and leads from a route to its guide and back", async () => {
    const { page, faults } = await openPage(browser, `${world.gateway.url}/docs`);
    await page.keyboard.press("/");
    await page.keyboard.type("queue_position");
    const found = page.locator("section:visible");
    await expect.poll(() => found.evaluateAll((all) => all.map(({ id }) => id))).toContain("schema-queueplace");
    expect(await page.locator("#post-batch").isVisible()).toBe(false);
    expect(await page.locator("#found").innerText()).toMatch(/^\d+ found$/);
    await page.keyboard.press("Enter");
    expect(new URL(page.url()).hash).not.toBe("");
    await page.getByLabel("Search").fill("no such word anywhere");
    await page.getByText("Nothing has all of these words.").waitFor();
    await page.getByLabel("Search").fill("");
    await page.locator("#get-overview").getByRole("link", { name: "docs/runs.md" }).click();
    expect(new URL(page.url()).hash).toBe("#guide-docs-runs-md");
    await page.locator("#guide-docs-runs-md").getByRole("link", { name: "GET /overview" }).click();
    expect(new URL(page.url()).hash).toBe("#get-overview");
    await page.goto(`${world.gateway.url}/docs?q=upstreams%20resume`);
    await expect.poll(() => found.count()).toBeLessThan(12);
    expect(faults).toEqual([]);
  });

  it.each([["light"], ["dark"]] as const)("fits a screen of 360 pixels, %s", async (colorScheme) => {
    const { page } = await openPage(browser, `${world.gateway.url}/docs`, 360);
    await page.emulateMedia({ colorScheme });
    const isWider = "document.documentElement.scrollWidth > document.documentElement.clientWidth";
    expect(await page.evaluate(isWider)).toBe(false);
  });
});
