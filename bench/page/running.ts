/** The page of a batch that runs: how long after the log an event is on the screen, and whether a reload loses anything. */
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { atLeast, atMost, exact, plain, type Part, type Row } from "../parts/row.ts";
import { openRunPage, startPlace, type Run } from "./place.ts";
import { scroll, SCROLLED_LIST_PX, watch, type Drawn, type Scrolled } from "./scroll.ts";

const line = z.looseObject({ event_type: z.string(), ts: z.string(), status: z.string().optional() });
const seenPoints = z.array(z.tuple([z.number(), z.number()]));

const END_MS = 180_000;
const WATCH_MS = 4_000;
const LOOK_MS = 100;

export async function measureRunning(calls: number): Promise<Part> {
  await using place = await startPlace();
  const run = await place.open({ name: "running", budget: { usd: 100 }, max_parallel: 64 });
  const { page, faults } = await openRunPage(place, run);
  await page.getByRole("heading", { level: 1 }).waitFor();
  await page.getByText("live", { exact: true }).waitFor();
  const items = Array.from({ length: calls }, (_, index) => ({ prompt: `Call ${index}`, model: modelOf(index) }));
  const body = JSON.stringify({ items });
  const opened = await run.send("/batch", { method: "POST", headers: { prefer: "respond-async" }, body });
  await opened.arrayBuffer();
  await page.locator(".rows").waitFor();
  const watched = await watch(place.browser, page, WATCH_MS);
  // The list grows as calls begin.
  const listPx = 'document.querySelector(".rows").scrollHeight';
  while (Number(await page.evaluate(listPx)) < SCROLLED_LIST_PX) await sleep(LOOK_MS);
  const scrolled = await scroll(place.browser, page);
  // A second reader, who comes in the middle and loads the page again.
  const second = await openRunPage(place, run);
  await second.page.locator(".rows").waitFor();
  const secondPaintMs = await paintMsOf(second.page);
  await second.page.reload();
  const shown = `${calls.toLocaleString("en-US")} of ${calls.toLocaleString("en-US")}`;
  await page.getByText(shown).waitFor({ timeout: END_MS });
  await second.page.getByText(shown).waitFor({ timeout: END_MS });
  const delays = delaysOf(await endTimes(run), seenPoints.parse(await page.evaluate("benchSeen.ended")));
  const isSame = (await figuresOf(page)) === (await figuresOf(second.page));
  const all = [...faults, ...second.faults];
  const rows: Row[] = [
    atMost("first paint, in the middle of the batch", secondPaintMs, 1_000, " ms"),
    ...watchRows(watched),
    ...scrollRows(scrolled),
    atMost("an end is on the screen after the log has it, median", quantile(delays, 0.5), 300, " ms"),
    atMost("the same, 95th percentile", quantile(delays, 0.95), 300, " ms"),
    plain("the same, worst", `${quantile(delays, 1)} ms of ${delays.length} ends`),
    exact("after a reload, the same figures", isSame ? "yes" : "no", "yes", isSame),
    exact("messages on the console, requests to other hosts", String(all.length), "0", all.length === 0),
  ];
  return { rows, faults: all };
}

function watchRows({ framesPerSecond, cpuMsPerSecond }: Drawn): Row[] {
  return [
    plain("CPU time of the main thread per second while it follows", `${Math.round(cpuMsPerSecond)} ms`),
    plain("frames per second while it follows", framesPerSecond.toFixed(1)),
  ];
}

function scrollRows({ framesPerSecond, workMsPerFrame, cpuMsPerSecond, longTasks, scrolledPx }: Scrolled): Row[] {
  return [
    atLeast("frames per second while it scrolls and calls end", framesPerSecond, 55),
    atMost("work of the main thread per frame", workMsPerFrame, 1_000 / 60, " ms"),
    plain("CPU time of the main thread per second while it scrolls", `${Math.round(cpuMsPerSecond)} ms`),
    plain("tasks above 50 ms while it scrolls", String(longTasks)),
    plain("scrolled", `${scrolledPx} px`),
  ];
}

/** Some fail at once, some are tried again, the others take a moment. */
function modelOf(index: number): string {
  if (index % 97 === 5) return "sim/fail?status=400";
  return `sim/slow?ms=${200 + ((index * 397) % 800)}`;
}

/** When the log had the ends of the calls, ms. */
async function endTimes(run: Run): Promise<number[]> {
  const text = await (await run.send(`/runs/${run.id}/log`)).text();
  const lines = text.split("\n").filter((each) => each.includes('"slot_completed"'));
  return lines.map((each) => Date.parse(line.parse(JSON.parse(each)).ts)).toSorted((a, b) => a - b);
}

/** For each call that ended: how long after its end the page showed a number of ended calls that counts it. */
function delaysOf(ends: readonly number[], points: readonly (readonly [number, number])[]): number[] {
  return ends.flatMap((endMs, at) => {
    const shown = points.find(([, count]) => count > at);
    return shown === undefined ? [] : [Math.max(0, shown[0] - endMs)];
  });
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}

async function paintMsOf(page: { evaluate: (text: string) => Promise<unknown> }): Promise<number> {
  return Number(await page.evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime"));
}

async function figuresOf(page: {
  locator: (selector: string) => { allInnerTexts: () => Promise<string[]> };
}): Promise<string> {
  return (
    await page.locator('section[aria-label="Progress"] dl > div, section[aria-label="Money"] dl > div').allInnerTexts()
  ).join(" ");
}
