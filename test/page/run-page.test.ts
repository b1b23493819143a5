/** The page at `/ui/runs/:id` in a real browser, beside a real gateway. */
import type { Browser, Page } from "playwright-core";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { endOf, openGroup } from "../contract/following.ts";
import { documentOf, startWorld, type RunAccess, type World } from "../contract/world.ts";
import { hasChromium, openPage, startBrowser, type Opened } from "./browser.ts";

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

const pageOf = (run: RunAccess, token = run.token, width?: number): Promise<Opened> =>
  openPage(browser, `${world.gateway.url}/ui/runs/${run.id}#token=${token}`, width);
const textIn = (page: Page, section: string) => page.getByRole("region", { name: section }).innerText();

/** The figures of a section by their names. */
async function figuresIn(page: Page, section: string): Promise<Record<string, string>> {
  const terms = page.getByRole("region", { name: section }).locator("dl > div");
  const texts = await terms.allInnerTexts();
  return Object.fromEntries(texts.map((text) => text.split("\n")).map(([name = "", value = ""]) => [name, value]));
}

describe.runIf(hasChromium)("the page of a run", () => {
  it("shows calls as they begin and end, without being loaded again", async () => {
    const run = await world.openRun({ default_model: "up-1", name: "live", budget: { usd: 2 } });
    const { page, faults } = await pageOf(run);
    await expect.poll(() => page.getByRole("heading", { level: 1 }).innerText()).toContain("live");
    const { at } = await openGroup(run, { prompts: ["a", "b", "{{status/400}} c", "{{fault/hang}} d"] });
    await expect
      .poll(() => figuresIn(page, "Progress"))
      .toMatchObject({ completed: "2", failed: "1", "in flight": "1", queued: "0" });
    expect(await textIn(page, "Failures")).toMatch(/upstream_error.*up\/up-1.*call 2: /s);
    expect(await figuresIn(page, "Money")).toMatchObject({ limit: "$2.00" });
    await run.send(at, { method: "DELETE" });
    await expect.poll(() => figuresIn(page, "Progress")).toMatchObject({ cancelled: "1", "in flight": "0" });
    expect(faults).toEqual([]);
  });

  it("says what queued calls wait for, to the run's token and to the operator, and no longer than they do", async () => {
    const run = await world.openRun({ default_model: "up-1", max_parallel: 1, budget: { usd: 1 } });
    const pages = [await pageOf(run), await pageOf(run, world.gateway.adminKey)];
    const { at } = await openGroup(run, { prompts: ["{{fault/hang}} a", "b", "c"] });
    for (const { page } of pages) await expect.poll(() => textIn(page, "Waiting")).toMatch(/2 × a permit/);
    await run.send(at, { method: "DELETE" });
    for (const { page, faults } of pages) {
      await expect.poll(() => page.getByRole("region", { name: "Waiting" }).count()).toBe(0);
      expect(faults).toEqual([]);
    }
  });

  it("shows the money that the run's document shows", async () => {
    const run = await world.openRun({ default_model: "up-1", budget: { usd: 1 } });
    await run.send("/batch", { json: { prompts: Array.from({ length: 20 }, (_, i) => `long enough to cost ${i}`) } });
    const { page } = await pageOf(run);
    const { spent } = (await documentOf(run)).budget.usd;
    await expect.poll(async () => (await figuresIn(page, "Money"))["spent"]).toBe(`$${spent.toFixed(6)}`);
    expect(await figuresIn(page, "Money")).toMatchObject({ reserved: "$0", limit: "$1.00" });
  });

  it("takes the token out of the address, and keeps it for a reload", async () => {
    const run = await world.openRun({ name: "kept" });
    const { page } = await pageOf(run);
    await page.getByRole("button", { name: "Cancel run" }).waitFor();
    expect(page.url()).toBe(`${world.gateway.url}/ui/runs/${run.id}`);
    await page.reload();
    await page.getByRole("button", { name: "Cancel run" }).waitFor();
    await page.getByRole("button", { name: "Forget credential" }).click();
    await page.getByLabel("Run token, or the operator's key").waitFor();
    expect(await page.evaluate("JSON.stringify(sessionStorage)")).toBe("{}");
  });

  it("asks for a token, and says why one is refused", async () => {
    const run = await world.openRun();
    const { page } = await openPage(browser, `${world.gateway.url}/ui/runs/${run.id}`);
    await page.getByLabel("Run token, or the operator's key").fill("fo-run-wrong");
    await page.keyboard.press("Enter");
    await expect.poll(() => page.getByRole("alert").innerText()).not.toBe("");
    await page.getByLabel("Run token, or the operator's key").fill(run.token);
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Cancel run" }).waitFor();
  });

  it("cancels the run, once that is confirmed", async () => {
    const run = await world.openRun({ default_model: "up-1" });
    const { page } = await pageOf(run);
    const cancel = page.getByRole("button", { name: "Cancel run" });
    await cancel.click();
    // openPage dismisses dialogs.
    expect((await documentOf(run)).status).toBe("active");
    page.removeAllListeners("dialog");
    page.on("dialog", (dialog) => void dialog.accept());
    await cancel.click();
    await expect.poll(() => page.getByRole("banner").innerText()).toContain("cancelled");
  });

  it("lets the operator pause, resume and top up, and nobody else", async () => {
    const run = await world.openRun({ budget: { usd: 1 } });
    const { page } = await pageOf(run, world.gateway.adminKey);
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByRole("button", { name: "Pause" }).waitFor();
    await page.getByLabel("Top up by $").fill("0.5");
    await page.getByRole("button", { name: "Top up" }).click();
    await expect.poll(() => figuresIn(page, "Money")).toMatchObject({ limit: "$1.50" });
    const other = await pageOf(run);
    await other.page.getByRole("button", { name: "Cancel run" }).waitFor();
    expect(await other.page.getByRole("button", { name: "Pause" }).count()).toBe(0);
  });

  it("runs nothing that a name, an error, an event or an answer contains", async () => {
    const hostile = [
      "<script>fetch('http://127.0.0.1:1/stolen')</script>",
      "<img src=http://127.0.0.1:1/x onerror=alert(1)>",
      "javascript:alert(1)",
      "\"'><svg onload=alert(1)>",
      "{{constructor.constructor('alert(1)')()}}",
    ];
    for (const text of hostile) {
      const run = await world.openRun({ default_model: "up-1", name: text, metadata: { text } });
      await run.send("/batch", { json: { items: [{ id: text, prompt: `{{status/400}} ${text}` }, { prompt: text }] } });
      await run.send("/log", { json: { event_type: "final_result", output: text, data: { text } } });
      const { page, faults } = await pageOf(run);
      await expect.poll(() => page.getByRole("heading", { level: 1 }).innerText()).toContain(text.slice(0, 10));
      await expect.poll(() => figuresIn(page, "Progress")).toMatchObject({ completed: "1", failed: "1" });
      expect(faults).toEqual([]);
    }
  });

  it.each([["light"], ["dark"]] as const)("fits a screen of 360 pixels, %s", async (colorScheme) => {
    const run = await world.openRun({ default_model: "up-1", name: "a rather long name of a run ".repeat(3) });
    await run.send("/batch", { json: { prompts: ["{{status/400}} no", "b"] } });
    const { page } = await pageOf(run, run.token, 360);
    await page.emulateMedia({ colorScheme });
    await page.getByRole("region", { name: "Timeline" }).waitFor();
    const isWider = "document.documentElement.scrollWidth > document.documentElement.clientWidth";
    expect(await page.evaluate(isWider)).toBe(false);
  });

  it("can be used by keyboard, with a name for each control", async () => {
    const run = await world.openRun({ default_model: "up-1" });
    await run.send("/batch", { json: { prompts: ["a"] } });
    const { page } = await pageOf(run);
    await page.getByRole("region", { name: "Timeline" }).waitFor();
    const focused = `(document.activeElement?.getAttribute("aria-label") ?? document.activeElement?.textContent ?? "").trim()`;
    const names = new Set<string>();
    for (let presses = 0; presses < 20; presses++) {
      await page.keyboard.press("Tab");
      names.add(String(await page.evaluate(focused)));
    }
    for (const name of ["Cancel run", "Calls shown", "Zoom in", "Zoom out", "Whole run", "Download trace"]) {
      expect([...names]).toContain(name);
    }
    expect([...names].some((name) => name.startsWith("2 rows"))).toBe(true);
  });

  it("shows the rows of 2,000 calls and draws only those on the screen", async () => {
    const run = await world.openRun({ default_model: "sim/echo", max_parallel: 64 });
    const { at } = await openGroup(run, { prompts: Array.from({ length: 2_000 }, (_, index) => `${index}`) });
    await endOf(run, at);
    const { page, faults } = await pageOf(run);
    const rows = page.getByRole("group", { name: /2001 rows/ });
    await rows.waitFor();
    const heights = await rows.evaluate((box) => [box.scrollHeight, box.querySelector("canvas")?.clientHeight ?? 0]);
    expect(heights[0]).toBeGreaterThan(2_001 * 15);
    expect(heights[1]).toBeLessThan(900);
    await rows.evaluate((box) => box.scrollTo(0, box.scrollHeight));
    await rows.hover({ position: { x: 300, y: 200 } });
    await expect.poll(() => textIn(page, "Timeline")).toMatch(/call \d+: completed, queued /);
    expect(faults).toEqual([]);
  });
});

describe.runIf(hasChromium)("the list of runs", () => {
  it("is for the operator, filters by name, and leads to each run", async () => {
    const name = `listed ${crypto.randomUUID()}`;
    const run = await world.openRun({ name });
    await world.openRun({ name: "another" });
    const { page } = await openPage(browser, `${world.gateway.url}/ui`);
    await page.getByLabel("The operator's key").fill(world.gateway.adminKey);
    await page.keyboard.press("Enter");
    await page.getByRole("searchbox").fill(name);
    await expect.poll(() => page.getByRole("row").count()).toBe(2);
    await page.getByRole("link", { name }).click();
    await expect.poll(() => page.getByRole("heading", { level: 1 }).innerText()).toContain(run.id);
  });

  it("refuses a run's token in the gateway's words", async () => {
    const run = await world.openRun();
    const { page } = await openPage(browser, `${world.gateway.url}/ui#token=${run.token}`);
    await expect.poll(() => page.getByRole("alert").innerText()).not.toBe("");
  });
});

describe.runIf(hasChromium)("the page's files", () => {
  it("are at most 80 KB of script, compressed, under a policy that allows nothing else", async () => {
    const script = await world.send("/ui/app.js");
    expect(script.headers.get("content-type")).toMatch(/^text\/javascript/);
    expect(gzipSync(script.text).length).toBeLessThan(80_000);
    for (const path of ["/ui", "/ui/runs/run_x", "/ui/app.css", "/ui/app.js"]) {
      const { status, headers } = await world.send(path);
      expect([path, status]).toEqual([path, 200]);
      expect(headers.get("content-security-policy")).toMatch(
        /default-src 'none'; script-src 'self'; style-src 'self';/,
      );
      expect(headers.get("content-security-policy")).not.toContain("unsafe");
    }
  });
});
