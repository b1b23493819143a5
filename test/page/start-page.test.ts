/** The page at `/ui` in a real browser, beside a real gateway. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import { openGroup } from "../contract/following.ts";
import { startWorld, type World } from "../contract/world.ts";
import { openPage, type Opened } from "./browser.ts";
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

const opened = z.looseObject({ id: z.string(), token: z.string() });

const startPage = (query = "", width?: number): Promise<Opened> =>
  openPage(browser, `${world.gateway.url}/ui${query}#token=${world.gateway.adminKey}`, width);
const unique = (name: string): string => `${name} ${crypto.randomUUID().slice(0, 8)}`;
/** The first cells of the rows of the table, without its head. */
const namesIn = (page: Page): Promise<string[]> => page.locator("table.runs tbody td.name a").allInnerTexts();
const rowOf = (page: Page, name: string) => page.getByRole("row").filter({ hasText: name });
const textIn = (page: Page, section: string) => page.getByRole("region", { name: section, exact: true }).innerText();

describe.runIf(hasChromium)("the list of runs", () => {
  it("asks for the operator's key, and refuses a run's token in the gateway's words", async () => {
    const run = await world.openRun({ name: unique("asked") });
    const { page } = await openPage(browser, `${world.gateway.url}/ui`);
    await page.getByLabel("The operator's key").fill(world.gateway.adminKey);
    await page.keyboard.press("Enter");
    await expect.poll(() => namesIn(page)).not.toEqual([]);
    const { page: refused } = await openPage(browser, `${world.gateway.url}/ui#token=${run.token}`);
    await expect.poll(() => refused.getByRole("alert").innerText()).not.toBe("");
  });

  it("shows a new run by itself, idle until it has a call, then working, then when its last call was", async () => {
    const { page, faults } = await startPage();
    await expect.poll(() => page.locator("table.runs .loading").count()).toBe(0);
    const name = unique("new");
    const run = await world.openRun({ name, default_model: "up-1" });
    await rowOf(page, name).waitFor();
    await expect.poll(() => rowOf(page, name).innerText()).toMatch(/idle\s+no call yet\s+0\s+0\s+\$0/);
    const { at } = await openGroup(run, { prompts: ["{{fault/hang}} a", "b"], concurrency: 1 });
    await expect.poll(() => rowOf(page, name).innerText()).toMatch(/working\s*1 in flight, 1 queued/);
    await run.send(at, { method: "DELETE" });
    await expect.poll(() => rowOf(page, name).innerText()).toMatch(/idle\s+(now|\d+ s ago)/);
    expect(faults).toEqual([]);
  });

  it("keeps its filters and its order in the address", async () => {
    const [first, second] = [unique("kept a"), unique("kept b")];
    const cheap = await world.openRun({ name: first, default_model: "up-1" });
    const dear = await world.openRun({ name: second, default_model: "up-1" });
    await cheap.send("/query", { json: { prompt: "a" } });
    await dear.send("/batch", { json: { prompts: ["a rather long prompt ".repeat(20), "{{status/400}} b"] } });
    const { page, faults } = await startPage();
    await page.getByLabel("Name, prompt, answer or error").fill("kept");
    await page.getByRole("button", { name: "spent" }).click();
    await expect.poll(() => namesIn(page)).toEqual([second, first]);
    expect(new URL(page.url()).search).toBe("?q=kept&sort=-spent");
    await page.reload();
    await expect.poll(() => namesIn(page)).toEqual([second, first]);
    await page.getByRole("button", { name: "spent" }).click();
    await expect.poll(() => namesIn(page)).toEqual([first, second]);
    await page.getByLabel("State", { exact: true }).selectOption("failed");
    await expect.poll(() => namesIn(page)).toEqual([second]);
    await page.getByLabel("State", { exact: true }).selectOption("closed");
    await page.getByText("No such runs.").waitFor();
    await page.getByRole("button", { name: "Show all" }).click();
    await page.getByText("More filters").click();
    await page.getByLabel("opened after").fill("2020-01-01T00:00");
    await page.getByLabel("spent from $").fill("5");
    await page.getByText("No such runs.").waitFor();
    await page.getByLabel("spent from $").fill("");
    await page.getByRole("link", { name: second }).click();
    await expect.poll(() => page.getByRole("heading", { level: 1 }).innerText()).toContain(second);
    expect(faults).toEqual([]);
  });

  it("finds runs by a prompt, says how far it has searched, and leads to the calls", async () => {
    const word = `w${crypto.randomUUID().slice(0, 8)}`;
    const [asked, other] = [unique("asked"), unique("other")];
    const run = await world.openRun({ name: asked, default_model: "up-1" });
    await run.send("/batch", { json: { prompts: ["none", `Where do <b>herons</b> ${word} nest?`] } });
    await world.openRun({ name: other, default_model: "up-1" });
    const { page, faults } = await startPage(`?q=${word}`);
    await expect.poll(() => namesIn(page)).toEqual([asked]);
    await page.getByText(/^Prompts and answers of all \d+ runs searched\./).waitFor();
    const link = page.getByRole("link", { name: `Where do <b>herons</b> ${word} nest?` });
    await link.click();
    await page.getByText("Prompts and answers of all stored calls searched.").waitFor();
    expect(new URL(page.url()).search).toBe(`?search=${word}`);
    await page.getByRole("group", { name: /^2 rows/ }).waitFor();
    await page.getByLabel("Search calls").fill(`${word} and more`);
    await page.getByText("No such calls.").waitFor();
    expect(faults).toEqual([]);
  });

  it("never says that there is no such run while older ones are not searched, and goes on if it is asked to", async () => {
    const word = `w${crypto.randomUUID().slice(0, 8)}`;
    const run = await world.openRun({ name: unique("far back") });
    const context = await browser.newContext();
    onTestFinished(() => context.close());
    const page = await context.newPage();
    // The gateway's bound is 200 runs; here its first page has looked at one.
    await page.route(/[?&]search=/, async (route) => {
      const isFirst = !route.request().url().includes("cursor=");
      const list = { object: "list", unread: [], missing_parts: 0 };
      const search = { calls: 1, in_part: [], unread_prompts: 0 };
      const first = { data: [], has_more: true, next_cursor: "1.run_x", search: { ...search, runs: 1, older: 41 } };
      const match = { where: "answer", group: "grp_1", index: 0, excerpt: "far away" };
      const found = { id: run.id, status: "active", created_at: new Date().toISOString(), match };
      const last = { data: [found], has_more: false, next_cursor: null, search: { ...search, runs: 41, older: 0 } };
      await route.fulfill({ json: { ...list, ...(isFirst ? first : last) } });
    });
    await page.goto(`${world.gateway.url}/ui?q=${word}#token=${world.gateway.adminKey}`);
    await page.getByText("Prompts and answers of the newest 1 of 42 runs searched.").waitFor();
    await page.getByText("No such runs so far.").waitFor();
    await page.getByRole("button", { name: "Search older runs" }).click();
    await page.getByText("Prompts and answers of all 42 runs searched.").waitFor();
    await page.getByRole("link", { name: "far away" }).waitFor();
    expect(await page.getByText("No such runs").count()).toBe(0);
  });

  it("shows child runs below their parent by their names, with what is its own and what is in all", async () => {
    const name = unique("parent");
    const run = await world.openRun({ name, default_model: "up-1", budget: { usd: 1 } });
    await run.send("/query", { json: { prompt: "of the parent" } });
    const child = opened.parse((await run.send("/runs", { json: { name: "part one", budget: { usd: 0.5 } } })).json);
    const below = opened.parse(
      (await world.send("/runs", { token: child.token, json: { name: "part one of one", budget: { usd: 0.1 } } })).json,
    );
    const prompts = Array.from({ length: 5 }, (_, at) => `${"long ".repeat(200)} ${at}`);
    await world.send("/batch", { token: below.token, json: { prompts, model: "up/up-1" } });
    const { page, faults } = await startPage(`?q=${encodeURIComponent(name)}`);
    await page.getByRole("button", { name: `1 child runs of ${name}` }).click();
    await page.getByRole("button", { name: "1 child runs of part one" }).click();
    await page.getByRole("link", { name: "part one of one" }).waitFor();
    await expect.poll(() => rowOf(page, name).innerText()).toMatch(/\$0\.00[0-9]{2}\s+own (<\$0\.0001|\$0\.0000)/);
    const starts = await page
      .locator("table.runs td.name > div")
      .evaluateAll((all) => all.map((each) => each.firstElementChild?.getBoundingClientRect().x ?? 0));
    expect(starts[1]).toBeGreaterThan(starts[0] ?? 0);
    expect(starts[2]).toBeGreaterThan(starts[1] ?? 0);
    expect(faults).toEqual([]);
  });

  it("says that it loads, with no zero, until the gateway has answered", async () => {
    const context = await browser.newContext();
    const page = await context.newPage();
    const answers: (() => void)[] = [];
    await page.route(/\/(runs|overview|upstreams)\b(?!\/)[^/]*$/, async (route) => {
      if (route.request().resourceType() === "document") return route.continue();
      await new Promise<void>((resolve) => answers.push(resolve));
      return route.continue().catch(() => undefined);
    });
    await page.goto(`${world.gateway.url}/ui#token=${world.gateway.adminKey}`);
    await page.getByText("Loading runs …").waitFor();
    const text = await page.getByRole("main").innerText();
    expect(text).not.toMatch(/\b0\b|\$0|No run/);
    for (const answer of answers) answer();
    await context.close();
  });
});

describe.runIf(hasChromium)("what the start page adds up", () => {
  it("is what was spent today, by hour, model and name, and what failed", async () => {
    const name = unique("spender");
    const run = await world.openRun({ name, default_model: "up-1", budget: { usd: 1 } });
    const prompts = [...Array.from({ length: 20 }, () => "long ".repeat(400)), "{{status/400}} no"];
    await run.send("/batch", { json: { prompts } });
    const { page, faults } = await startPage();
    await expect.poll(() => textIn(page, "Spend")).toContain(name);
    expect(await textIn(page, "Spend")).toMatch(/By model, today\s+up\/up-1[^]*By name, today/);
    await expect.poll(() => textIn(page, "Now")).toMatch(/failed today\s+[1-9]\d*\s+\d+ upstream_error/);
    expect(await page.getByRole("img", { name: /^Spend in each of the last 24 hours, at most \$/ }).count()).toBe(1);
    expect(faults).toEqual([]);
  });

  it("is why a key is stopped, and a button that tries it at once", async () => {
    const model = world.modelAside();
    const [key] = model.split("/");
    const name = unique("stopped");
    const run = await world.openRun({ name });
    await openGroup(run, { prompts: ["{{status/401}} a"], model });
    const { page } = await startPage();
    // Its call waits for the key: it is not at work.
    await expect.poll(() => rowOf(page, name).innerText()).toMatch(/waiting\s*1 queued/);
    await expect
      .poll(() => textIn(page, "Keys"))
      .toMatch(new RegExp(`${key} stopped: .*401.*(tried again in|the next call tries it)`, "s"));
    const { requests } = world.upstream.counters;
    await page.getByRole("button", { name: `Try ${key} now` }).click();
    await expect.poll(() => world.upstream.counters.requests).toBeGreaterThan(requests);
  });

  it.each([["light"], ["dark"]] as const)("fits a screen of 360 pixels, %s", async (colorScheme) => {
    await world.openRun({ name: "a rather long name of a run ".repeat(4) });
    const { page } = await startPage("", 360);
    await page.emulateMedia({ colorScheme });
    await expect.poll(() => textIn(page, "Now")).not.toContain("…");
    await expect.poll(() => namesIn(page)).not.toEqual([]);
    const isWider = "document.documentElement.scrollWidth > document.documentElement.clientWidth";
    expect(await page.evaluate(isWider)).toBe(false);
  });
});
