/** The pages as axe-core examines them: start page and page of a run, each also with a search, and reference, light and dark, wide and narrow. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { startWorld, type RunAccess, type World } from "../contract/world.ts";
import { hasChromium, startBrowser } from "./chromium.ts";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const violations = z.array(
  z.object({ id: z.string(), help: z.string(), nodes: z.array(z.looseObject({ html: z.string() })) }),
);

let world: World;
let browser: Browser;
let run: RunAccess;
beforeAll(async () => {
  if (!hasChromium) return;
  [world, browser] = await Promise.all([startWorld(), startBrowser()]);
  run = await world.openRun({ name: "examined", default_model: "up-1", budget: { usd: 1 } });
  await run.send("/batch", { json: { prompts: ["a", "{{status/400}} b", "Where do herons nest?"] } });
  await run.send("/dag", { json: { tasks: [{ id: "one", prompt: "a" }] } });
  await run.send("/runs", { json: { name: "below", budget: { usd: 0.1 } } });
  const stopped = await world.openRun({ name: "stopped" });
  const options = { headers: { prefer: "respond-async" } };
  await stopped.send("/batch", { json: { prompts: ["{{status/401}} a"], model: world.modelAside() }, ...options });
});
afterAll(async () => {
  await browser?.close();
  await world?.stop();
});

const PAGES: readonly (readonly [string, () => string, string])[] = [
  ["the start page", () => "/ui", "By name, today"],
  ["the start page with a search", () => "/ui?q=herons", "Prompts and answers of all"],
  ["the page of a run", () => `/ui/runs/${run.id}`, "1 child run"],
  ["the page of a run with a search", () => `/ui/runs/${run.id}?search=herons`, "all stored calls searched."],
  ["the reference", () => "/docs", "Schemas"],
  ["the sign-in", () => "/ui/runs/run_x", "Run token"],
];
const VIEWS = [
  [1_280, "light"],
  [1_280, "dark"],
  [360, "light"],
  [360, "dark"],
] as const;

describe.runIf(hasChromium).each(PAGES)("%s", (name, path, text) => {
  it.each(VIEWS)("has no fault for axe at %d px, %s", async (width, colorScheme) => {
    // The script that examines a page is none that its policy allows.
    const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme, bypassCSP: true });
    const page = await context.newPage();
    const token = name === "the sign-in" ? "" : `#token=${world.gateway.adminKey}`;
    await page.goto(`${world.gateway.url}${path()}${token}`);
    await page.getByText(text).first().waitFor();
    for (const menu of await page.locator("details.menu > summary").all()) await menu.click();
    await page.addScriptTag({ content: AXE });
    const found = violations.parse(await page.evaluate("axe.run().then(({ violations }) => violations)"));
    const shown = found.map(
      ({ id, help, nodes }) => `${id}: ${help}: ${nodes.slice(0, 3).map(({ html }) => html.slice(0, 200))}`,
    );
    expect(shown).toEqual([]);
    await context.close();
  });
});
