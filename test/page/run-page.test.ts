/** The page at `/ui/runs/:id` in a real browser, beside a real gateway. */
import type { Browser, Page } from "playwright-core";
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { endOf, openGroup } from "../contract/following.ts";
import { z } from "zod";
import { durationText, usdText } from "../../ui/model/format.ts";
import { documentOf, groupOf, startWorld, type RunAccess, type World } from "../contract/world.ts";
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

const pageOf = (run: RunAccess, token = run.token, width?: number): Promise<Opened> =>
  openPage(browser, `${world.gateway.url}/ui/runs/${run.id}#token=${token}`, width);
const openMenu = (page: Page, name: string): Promise<void> => page.getByText(name, { exact: true }).click();
const textIn = (page: Page, section: string) => page.getByRole("region", { name: section, exact: true }).innerText();

/** The figures of a section by their names; of the progress, also those in the sentence of one moment. */
async function figuresIn(page: Page, section: string): Promise<Record<string, string>> {
  const terms = page.getByRole("region", { name: section, exact: true }).locator("dl > div");
  const texts = await terms.allInnerTexts();
  const figures = Object.fromEntries(
    texts.map((text) => text.split("\n")).map(([name = "", value = ""]) => [name, value]),
  );
  if (section !== "Progress") return figures;
  const sentence = await page.getByLabel("Waiting").allInnerTexts();
  const [, inFlight = "0", queued = "0"] = /^([\d,]+) in flight, ([\d,]+) queued/.exec(sentence[0] ?? "") ?? [];
  return { failed: "0", cancelled: "0", "in flight": inFlight, queued, ...figures };
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
    for (const { page } of pages)
      await expect
        .poll(() => page.getByLabel("Waiting").innerText())
        .toMatch(/2 wait for one of the run's calls to end/);
    await run.send(at, { method: "DELETE" });
    for (const { page, faults } of pages) {
      await expect.poll(() => page.getByLabel("Waiting").count()).toBe(0);
      expect(faults).toEqual([]);
    }
  });

  it("shows the money that the run's document shows", async () => {
    const run = await world.openRun({ default_model: "up-1", budget: { usd: 1 } });
    await run.send("/batch", { json: { prompts: Array.from({ length: 20 }, (_, i) => `long enough to cost ${i}`) } });
    const { page } = await pageOf(run);
    const { spent } = (await documentOf(run)).budget.usd;
    await expect.poll(async () => (await figuresIn(page, "Money"))["spent"]).toBe(usdText(spent));
    expect(await figuresIn(page, "Money")).toMatchObject({ reserved: "$0", limit: "$1.00" });
  });

  it("shows how long calls took and were queued, as the run's document says it", async () => {
    const run = await world.openRun({ default_model: "up-1", max_parallel: 3 });
    const prompts = ["{{delay/90}} slow", "{{status/503/first/1}} twice", "{{status/400}} no", "d", "e"];
    await run.send("/batch", { json: { prompts } });
    const { page } = await pageOf(run);
    const times = z.object({ p50: z.number(), p95: z.number(), p99: z.number() });
    const { latency_ms, queued_ms } = z
      .looseObject({ latency_ms: times, queued_ms: times })
      .parse((await documentOf(run)).metrics);
    const shown = ({ p50, p95, p99 }: z.infer<typeof times>) => [p50, p95, p99].map(durationText).join(" · ");
    await expect.poll(() => figuresIn(page, "Facts")).toMatchObject({ "latency p50 · p95 · p99": shown(latency_ms) });
    // A queue is shown that somebody would notice.
    expect((await figuresIn(page, "Facts"))["queue p50 · p95 · p99"]).toBe(
      queued_ms.p95 > 100 ? shown(queued_ms) : undefined,
    );
  });

  it("takes the token out of the address, and keeps it for a reload", async () => {
    const run = await world.openRun({ name: "kept" });
    const { page } = await pageOf(run);
    await openMenu(page, "Manage");
    await page.getByRole("button", { name: "Cancel run" }).waitFor();
    expect(page.url()).toBe(`${world.gateway.url}/ui/runs/${run.id}`);
    await page.reload();
    await page.getByText("Manage", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
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
    await page.getByText("Manage", { exact: true }).waitFor();
  });

  it("says that a run does not exist, and does not go on loading it", async () => {
    const run = await world.openRun();
    const { page } = await openPage(browser, `${world.gateway.url}/ui/runs/run_nowhere#token=${run.token}`);
    await expect.poll(() => page.getByRole("alert").innerText()).toBe("run run_nowhere not found");
    // Nothing is shown as zero that is not known.
    expect(await page.getByRole("main").innerText()).not.toMatch(/\b0\b|\$0/);
  });

  it("cancels the run, once that is confirmed", async () => {
    const run = await world.openRun({ default_model: "up-1" });
    const { page } = await pageOf(run);
    await openMenu(page, "Manage");
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
    await openMenu(page, "Manage");
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByRole("button", { name: "Pause" }).waitFor();
    await page.getByLabel("Top up by $").fill("0.5");
    await page.getByRole("button", { name: "Top up" }).click();
    await expect.poll(() => figuresIn(page, "Money")).toMatchObject({ limit: "$1.50" });
    const other = await pageOf(run);
    await openMenu(other.page, "Manage");
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
    for (const id of ["one", "two"])
      await run.send("/dag", {
        json: {
          tasks: [
            { id, prompt: "a" },
            { id: "b", prompt: "c" },
          ],
        },
      });
    const { page } = await pageOf(run, run.token, 360);
    await page.emulateMedia({ colorScheme });
    await page.getByRole("region", { name: "Timeline" }).waitFor();
    await page.getByLabel("Graph shown").waitFor();
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
    for (let presses = 0; presses < 24; presses++) {
      await page.keyboard.press("Tab");
      const name = String(await page.evaluate(focused));
      names.add(name);
      if (name === "Export" || name === "Manage") await page.keyboard.press("Enter");
    }
    for (const name of ["Results as CSV", "Trace", "Cancel run", "Calls shown", "Zoom in", "Zoom out", "Whole run"]) {
      expect([...names]).toContain(name);
    }
    expect([...names].some((name) => name.startsWith("2 rows"))).toBe(true);
  });

  it("shows the rows of 2,000 calls and draws only those on the screen and some around them, wherever it is", async () => {
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
    const isCovered = (): Promise<boolean> =>
      rows.evaluate((box) => {
        const [seen, drawn] = [box.getBoundingClientRect(), box.querySelector("canvas")?.getBoundingClientRect()];
        return drawn !== undefined && drawn.top <= seen.top + 1 && drawn.bottom >= seen.bottom - 2;
      });
    await expect.poll(isCovered).toBe(true);
    await rows.hover({ position: { x: 300, y: 200 } });
    await expect.poll(() => textIn(page, "Timeline")).toMatch(/call \d+: completed, queued /);
    expect(faults).toEqual([]);
  });
});

describe.runIf(hasChromium)("the graph of a run", () => {
  const tasks = [
    { id: "find", prompt: '{"items":["a","b"]}' },
    { id: "each", foreach: "{{find.output.json.items}}", prompt: "Is this true? {{item}}" },
    { id: "bad", prompt: "{{status/400}} no" },
    { id: "never", prompt: "{{bad.output}}" },
    { id: "report", prompt: "{{each.outputs}}" },
  ];

  it("has a box for each task with its state, and can be read by keyboard", async () => {
    const run = await world.openRun({ default_model: "up-1", budget: { usd: 1 } });
    await run.send("/dag", { json: { tasks } });
    const { page, faults } = await pageOf(run);
    const graph = page.getByRole("region", { name: "Graph" });
    const labels = () =>
      graph
        .locator("svg [role=button]")
        .evaluateAll((all) => all.map((each) => each.querySelector("title")?.textContent ?? ""));
    await expect
      .poll(labels)
      .toEqual([
        expect.stringMatching(/^find: completed, .*, on the critical path$/),
        expect.stringMatching(/^each: 2\/2 completed, .*, on the critical path$/),
        expect.stringMatching(/^bad: failed/),
        expect.stringMatching(/^never: skipped$/),
        expect.stringMatching(/^report: completed, .*, on the critical path$/),
      ]);
    expect(await graph.innerText()).toMatch(/Critical path, .*: find → each → report/);
    await graph.getByRole("button").first().focus();
    await page.keyboard.press("ArrowRight");
    await expect.poll(() => graph.getByRole("status").innerText()).toMatch(/each\s+completed\s+2\s+0/);
    await page.keyboard.press("ArrowRight");
    await expect.poll(() => graph.getByRole("status").innerText()).toMatch(/report|never/);
    // Calls that will never start leave nothing to wait for.
    expect(await figuresIn(page, "Progress")).toMatchObject({ queued: "0", "not started": "1" });
    // The names of tasks come with a request of the page's own.
    await expect.poll(() => textIn(page, "Failures")).toContain("bad: ");
    expect(faults).toEqual([]);
  });

  it("shows a task that a condition skips at once, while another one runs", async () => {
    const run = await world.openRun({ default_model: "up-1", budget: { usd: 1 } });
    const branch = [
      { id: "rate", prompt: '{"score": 0.1}' },
      { id: "accept", prompt: "yes", run_if: { task: "rate", json: "$.score > 0.5" } },
      { id: "slow", prompt: "{{fault/hang}} a" },
    ];
    const opened = await run.send("/dag", { json: { tasks: branch }, headers: { prefer: "respond-async" } });
    const { page } = await pageOf(run);
    const boxes = page.getByRole("region", { name: "Graph" }).locator("svg [role=button]");
    const labels = () => boxes.evaluateAll((all) => all.map((each) => each.querySelector("title")?.textContent ?? ""));
    await expect
      .poll(labels)
      .toEqual([
        expect.stringMatching(/^rate: completed/),
        expect.stringMatching(/^accept: skipped$/),
        expect.stringMatching(/^slow: running/),
      ]);
    expect(await figuresIn(page, "Progress")).toMatchObject({ "not started": "1" });
    await run.send(opened.headers.get("location") ?? "", { method: "DELETE" });
  });

  it("follows tasks as they begin and end, and those that a change adds", async () => {
    const run = await world.openRun({ default_model: "up-1", budget: { usd: 1 } });
    const waiting = [
      { id: "first", prompt: "{{fault/hang}} a" },
      { id: "second", prompt: "b", dependencies: ["first"] },
    ];
    const opened = await run.send("/dag", { json: { tasks: waiting }, headers: { prefer: "respond-async" } });
    const at = opened.headers.get("location") ?? "";
    const { page } = await pageOf(run);
    const graph = page.getByRole("region", { name: "Graph" });
    const labels = () =>
      graph
        .locator("svg [role=button]")
        .evaluateAll((all) => all.map((each) => each.querySelector("title")?.textContent ?? ""));
    await expect
      .poll(labels)
      .toEqual([expect.stringMatching(/^first: running/), expect.stringMatching(/^second: not begun/)]);
    const id = at.slice(at.lastIndexOf("/") + 1);
    const operations = [{ op: "add_task", task: { id: "third", prompt: "c" } }];
    await run.send(`/dag/${id}`, { method: "PATCH", json: { version: 1, operations } });
    await expect.poll(labels).toContainEqual(expect.stringMatching(/^third: completed/));
    await run.send(`/dag/${id}`, { method: "DELETE" });
    await expect.poll(labels).toContainEqual(expect.stringMatching(/^second: (skipped|cancelled)/));
  });
});

describe.runIf(hasChromium)("what a reader asks for on the page of a run", () => {
  it("is the beginning of a call's prompt and answer, at the row that the arrow keys choose", async () => {
    const run = await world.openRun({ default_model: "up-1" });
    await run.send("/batch", { json: { prompts: ["the first prompt", "<b>the second</b> prompt"] } });
    const { page, faults } = await pageOf(run);
    const timeline = page.getByRole("region", { name: "Timeline" });
    await expect.poll(() => figuresIn(page, "Progress")).toMatchObject({ completed: "2" });
    const list = timeline.locator(".rows");
    for (let presses = 0; presses < 3; presses++) await list.press("ArrowDown");
    const details = timeline.getByRole("status");
    await expect
      .poll(() => details.innerText())
      .toMatch(/call 1: completed[^]*Prompt <b>the second<\/b> prompt\s+Answer <b>/);
    await list.press("ArrowUp");
    await expect.poll(() => details.innerText()).toMatch(/call 0: completed[^]*Prompt the first prompt/);
    await page.getByLabel("Colour", { exact: true }).selectOption("model");
    expect(await timeline.getByRole("list", { name: "Colours" }).innerText()).toContain("up/up-1");
    await page.getByLabel("Colour", { exact: true }).selectOption("cost");
    expect(await timeline.getByRole("list", { name: "Colours" }).innerText()).toContain("up to $");
    await page.getByLabel("Colour", { exact: true }).selectOption("latency");
    expect(await timeline.getByRole("list", { name: "Colours" }).innerText()).toMatch(/up to \d+ ms/);
    expect(faults).toEqual([]);
  });

  it("is the tree of the runs below it by their names, and the run above it by its name", async () => {
    const run = await world.openRun({ name: "the root of all", default_model: "up-1", budget: { usd: 1 } });
    const opened = async (token: string, name: string) => {
      const json = { name, budget: { usd: 0.25 }, default_model: "up-1" };
      return z
        .looseObject({ id: z.string(), token: z.string() })
        .parse((await world.send("/runs", { token, json })).json);
    };
    const child = await opened(run.token, "child");
    await opened(child.token, "grandchild");
    const { page, faults } = await pageOf(run);
    await expect
      .poll(() => figuresIn(page, "Money"))
      .toMatchObject({ reserved: "$0.2500*", "of it for child runs": "$0.2500*" });
    await page.getByRole("button", { name: "1 child runs of child" }).click();
    await page.getByRole("link", { name: "grandchild" }).click();
    await page.getByRole("link", { name: /^(parent run|child)/ }).click();
    await expect.poll(() => page.getByRole("heading", { level: 1 }).innerText()).toMatch(/^child/);
    await page.getByRole("link", { name: "the root of all" }).waitFor();
    expect(faults).toEqual([]);
  });

  it("is each call by the name that its client gave it, and those alone that are searched for", async () => {
    const run = await world.openRun({ default_model: "up-1" });
    const items = [
      { id: "page <1>", prompt: "a" },
      { id: "page 2", prompt: "b" },
    ];
    await run.send("/batch", { json: { items } });
    const { page, faults } = await pageOf(run);
    const timeline = page.getByRole("region", { name: "Timeline", exact: true });
    const list = timeline.locator(".rows");
    await list.waitFor();
    const chosen = async (): Promise<string> => {
      await list.press("ArrowDown");
      return timeline.getByRole("status").innerText();
    };
    await expect.poll(chosen).toMatch(/^page 2: completed/);
    await page.getByLabel("Search calls").fill("<1>");
    await page.getByRole("group", { name: /^2 rows/ }).waitFor();
    await expect.poll(chosen).toMatch(/^page <1>: completed/);
    await page.getByLabel("Search calls").fill("nothing of it");
    await page.getByText("No such calls.").waitFor();
    expect(faults).toEqual([]);
  });

  it("is the calls of one cause of failure, from its line under the failures", async () => {
    const run = await world.openRun({ default_model: "up-1" });
    await run.send("/batch", { json: { prompts: ["a", "{{status/400}} b", "{{status/400}} c", "d"] } });
    const { page, faults } = await pageOf(run);
    await page.getByRole("group", { name: /^5 rows/ }).waitFor();
    await page.getByRole("button", { name: "Show 2 calls" }).click();
    await page.getByRole("group", { name: /^3 rows/ }).waitFor();
    const list = page.locator("#timeline .rows");
    for (let presses = 0; presses < 2; presses++) await list.press("ArrowDown");
    expect(await page.locator("#timeline").getByRole("status").innerText()).toMatch(
      /^call 1: failed[^]*upstream_error: /,
    );
    await page.getByRole("button", { name: /^Only upstream_error/ }).click();
    await page.getByRole("group", { name: /^5 rows/ }).waitFor();
    // The list of runs leads there, too.
    await page.goto(`${world.gateway.url}/ui/runs/${run.id}?show=failed`);
    await page.getByRole("group", { name: /^3 rows/ }).waitFor();
    expect(faults).toEqual([]);
  });

  it("is its results as lines and as a table, in which no text is computed", async () => {
    const run = await world.openRun({ default_model: "up-1" });
    const items = [
      { id: "first", prompt: '=HYPERLINK("x")' },
      { prompt: "two\nlines" },
      { prompt: "{{status/400}} no" },
    ];
    await run.send("/batch", { json: { items } });
    const { page, faults } = await pageOf(run);
    await page.getByRole("group", { name: /^4 rows/ }).waitFor();
    await openMenu(page, "Export");
    const saved = async (name: string): Promise<string> => {
      const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name }).click()]);
      return readFile(await download.path(), "utf8");
    };
    const lines = (await saved("Results as JSON Lines")).trim().split("\n");
    expect(
      lines.map((line) => z.looseObject({ index: z.int(), status: z.string() }).parse(JSON.parse(line))),
    ).toMatchObject([
      { index: 0, id: "first", status: "completed" },
      { index: 1, status: "completed", result: "two\nlines" },
      { index: 2, status: "failed" },
    ]);
    const table = await saved("Results as CSV");
    expect(table.split("\r\n")[0]).toMatch(/^group,index,id,status,model,.*,result$/);
    expect(table).toContain(`,first,completed,`);
    expect(table).toContain(`,"'=HYPERLINK(""x"")"\r\n`);
    expect(table).toContain(`"two\nlines"`);
    expect(table).toMatch(/2,,failed,.*upstream_error,/);
    expect(faults).toEqual([]);
  });

  it("is what a batch lacks once more, by keyboard, and only once", async () => {
    const run = await world.openRun({ default_model: "up-1", budget: { usd: 1 } });
    const prompts = ["good", "{{status/400/first/1}} in a batch", "also good"];
    const group = groupOf(await run.send("/batch", { json: { prompts } }));
    const { page, faults } = await pageOf(run);
    const button = page.getByRole("button", { name: `Retry what did not complete of ${group.id}` });
    await button.focus();
    const { requests } = world.upstream.counters;
    await page.keyboard.press("Enter");
    await expect.poll(() => button.count()).toBe(0);
    await expect.poll(() => figuresIn(page, "Progress")).toMatchObject({ completed: "3", failed: "1", queued: "0" });
    expect(world.upstream.counters.requests).toBe(requests + 1);
    await page.reload();
    await expect.poll(() => figuresIn(page, "Progress")).toMatchObject({ completed: "3", failed: "1", queued: "0" });
    expect(await textIn(page, "Failures")).toContain("call 1: ");
    expect(await button.count()).toBe(0);
    expect(faults).toEqual([]);
  });

  it("has no button for it at single calls, at a batch that runs, and for a run that has ended", async () => {
    const run = await world.openRun({ default_model: "up-1", window_ms: 10_000 });
    const failing = { json: { prompt: "{{status/400}} no" } };
    await Promise.all([run.send("/query", failing), run.send("/query", failing)]);
    const { at } = await openGroup(run, { prompts: ["{{status/400}} no", "{{fault/hang}} b"] });
    const { page } = await pageOf(run);
    const buttons = page.getByRole("button", { name: /^Retry/ });
    await expect.poll(() => figuresIn(page, "Progress")).toMatchObject({ failed: "3", "in flight": "1" });
    expect(await buttons.count()).toBe(0);
    await run.send(at, { method: "DELETE" });
    await expect.poll(() => buttons.count()).toBe(1);
    await run.send(`/runs/${run.id}/close`, { method: "POST" });
    await expect.poll(() => buttons.count()).toBe(0);
  });

  it("is a graph once more, without what completed", async () => {
    const run = await world.openRun({ default_model: "up-1", budget: { usd: 1 } });
    const tasks = [
      { id: "good", prompt: "good" },
      { id: "bad", prompt: "{{status/400/first/1}} once" },
    ];
    await run.send("/dag", { json: { tasks } });
    const { page } = await pageOf(run);
    await page.getByRole("button", { name: "Retry what did not complete" }).click();
    await expect.poll(() => page.getByLabel("Graph shown").locator("option").allInnerTexts()).toHaveLength(2);
    await expect.poll(() => page.getByLabel("Graph shown").locator("option").last().innerText()).toContain("completed");
    expect(await page.getByRole("button", { name: "Retry what did not complete" }).count()).toBe(0);
  });
});

describe.runIf(hasChromium)("the page's files", () => {
  it("are at most 80 KB of script, compressed, under a policy that allows nothing else", async () => {
    const script = await world.send("/ui/app.js");
    expect(script.headers.get("content-type")).toMatch(/^text\/javascript/);
    expect(gzipSync(script.text).length).toBeLessThan(80_000);
    const [, style = ""] = /<style>(.*?)<\/style>/s.exec((await world.send("/ui")).text) ?? [];
    expect(style).not.toBe("");
    const hash = createHash("sha256").update(style).digest("base64");
    for (const path of ["/ui", "/ui/runs/run_x", "/ui/app.js"]) {
      const { status, headers } = await world.send(path);
      expect([path, status]).toEqual([path, 200]);
      const policy = headers.get("content-security-policy");
      expect(policy).toContain(
        `default-src 'none'; script-src 'self'; style-src 'sha256-${hash}'; connect-src 'self';`,
      );
      expect(policy).not.toContain("unsafe");
    }
  });

  it.each([["/ui"], ["/ui/runs/run_x"]])("have all that the first paint of %s needs in the document", async (path) => {
    const context = await browser.newContext();
    onTestFinished(() => context.close());
    const page = await context.newPage();
    // The document comes, and nothing after it ever does: neither script nor list.
    const asked: string[] = [];
    await page.route("**/*", (route) => {
      if (route.request().resourceType() === "document") return route.continue();
      asked.push(new URL(route.request().url()).pathname);
    });
    await page.goto(`${world.gateway.url}${path}#token=${world.gateway.adminKey}`, { waitUntil: "commit" });
    const paints = "performance.getEntriesByName('first-contentful-paint').length";
    await expect.poll(() => page.evaluate(paints)).toBe(1);
    expect(await page.getByRole("main").innerText()).toBe("Loading …");
    await expect.poll(() => asked).toEqual(["/ui/app.js"]);
  });
});
