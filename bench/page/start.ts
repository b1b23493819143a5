/**
 * The start page with many runs: how soon something is there, and a new run; and the page of a batch that runs, looked at again and
 * again: what waits must add up to what is queued.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Page } from "playwright-core";
import { atMost, exact, plain, type Part, type Row } from "../parts/row.ts";
import { openRunPage, startPlace, type Place } from "./place.ts";

const LOADS = 7;
const NEW_RUNS = 15;
const LOOKS = 500;
const OPENED_AT_ONCE = 25;
/** Calls of the batch, of four kinds: some wait for the run's width, others for a retry. */
const CALLS = 3_000;

export async function measureStart(runs: number): Promise<Part> {
  await using place = await startPlace();
  for (let at = 0; at < runs; at += OPENED_AT_ONCE) {
    const names = Array.from({ length: Math.min(OPENED_AT_ONCE, runs - at) }, (_, index) => `run ${at + index}`);
    await Promise.all(names.map((name) => place.open({ name, budget: { usd: 1 } })));
  }
  const loads: { paintMs: number; rowsMs: number }[] = [];
  for (let load = 0; load < LOADS; load++) loads.push(await loadTimes(place));
  const delays = await newRunDelays(place);
  const looks = await lookAgain(place);
  const wrong = looks.filter((text) => !addsUp(text));
  const rows: Row[] = [
    atMost(
      `first paint with ${runs} runs, median of ${LOADS}`,
      median(loads.map(({ paintMs }) => paintMs)),
      300,
      " ms",
    ),
    plain("the same, worst", `${Math.round(Math.max(...loads.map(({ paintMs }) => paintMs)))} ms`),
    plain("the first runs are there, median", `${Math.round(median(loads.map(({ rowsMs }) => rowsMs)))} ms`),
    atMost(`a new run is there after its opening, worst of ${NEW_RUNS}`, Math.max(...delays), 1_000, " ms"),
    plain("the same, median", `${Math.round(median(delays))} ms`),
    exact(`looks at a batch whose waits do not add up, of ${LOOKS}`, String(wrong.length), "0", wrong.length === 0),
    plain("different sentences among them", String(new Set(looks).size)),
  ];
  return { rows, faults: wrong.slice(0, 5) };
}

/** In the page: when the first run was in the table. */
const WATCH = `(() => {
  globalThis.benchRowsMs = null;
  new MutationObserver(() => {
    if (globalThis.benchRowsMs === null && document.querySelector("table.runs td.name") !== null) globalThis.benchRowsMs = performance.now();
  }).observe(document, { subtree: true, childList: true });
})()`;

async function openStart({ url, browser, adminKey }: Place): Promise<Page> {
  const context = await browser.newContext({ viewport: { width: 1_280, height: 900 } });
  const page = await context.newPage();
  await page.addInitScript(WATCH);
  await page.goto(`${url}/ui#token=${adminKey}`);
  await page.locator("table.runs td.name").first().waitFor();
  return page;
}

async function loadTimes(place: Place): Promise<{ paintMs: number; rowsMs: number }> {
  const page = await openStart(place);
  const paintMs = Number(await page.evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime"));
  const rowsMs = Number(await page.evaluate("benchRowsMs"));
  await page.context().close();
  return { paintMs, rowsMs };
}

/** From the answer to `POST /runs` to the row of the run. */
async function newRunDelays(place: Place): Promise<number[]> {
  const page = await openStart(place);
  const delays: number[] = [];
  for (let at = 0; at < NEW_RUNS; at++) {
    // At another time of the page's own clock each time.
    await sleep(137 * (1 + (at % 7)));
    const name = `new ${crypto.randomUUID()}`;
    await place.open({ name });
    const beganMs = performance.now();
    await page.getByRole("link", { name }).waitFor();
    delays.push(performance.now() - beganMs);
  }
  await page.context().close();
  return delays;
}

/** The sentence that says what a batch waits for, read at random times while it runs. */
async function lookAgain(place: Place): Promise<string[]> {
  const run = await place.open({ name: "looked at", budget: { usd: 0.5 }, max_parallel: 24 });
  const { page } = await openRunPage(place, run);
  const items = Array.from({ length: CALLS }, (_, index) => ({
    prompt: `Call ${index}`,
    model: MODELS[index % MODELS.length],
  }));
  const headers = { prefer: "respond-async" };
  const opened = await run.send("/batch", { method: "POST", headers, body: JSON.stringify({ items }) });
  await opened.arrayBuffer();
  await page.locator(".waits").waitFor();
  const looks: string[] = [];
  while (looks.length < LOOKS) {
    const text = await page.evaluate("document.querySelector('.waits')?.textContent ?? ''");
    if (typeof text === "string" && text !== "") looks.push(text);
    await sleep(Math.random() * 40);
  }
  await (await run.send(`/runs/${run.id}`, { method: "DELETE" })).arrayBuffer();
  await page.context().close();
  return looks;
}

const MODELS = ["sim/slow?ms=900", "sim/slow?ms=1400", "sim/fail?status=503&rate=0.5&times=2", "sim/slow?ms=500"];

/** `8 in flight, 12 queued: 10 wait for …; 2 wait for ….` */
function addsUp(text: string): boolean {
  const [, queued = "", reasons = ""] = /in flight, ([\d,]+) queued(?:: (.*))?\.$/s.exec(text) ?? [];
  const parts = [...reasons.matchAll(/(?:^|; )([\d,]+) waits? for /g)].map(([, count = ""]) => numberOf(count));
  return queued !== "" && parts.reduce((sum, count) => sum + count, 0) === numberOf(queued);
}

function numberOf(text: string): number {
  return Number(text.replaceAll(",", ""));
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}
