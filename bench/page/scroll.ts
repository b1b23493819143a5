/** How smoothly the timeline scrolls, and what following a run costs, by Chromium's own trace. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Browser, Page } from "playwright-core";
import { z } from "zod";

export type Drawn = {
  /** Frames that the compositor drew per second. */
  framesPerSecond: number;
  /** Time that the page's main thread was at work for each of them, ms. */
  workMsPerFrame: number;
  /** Its CPU time per second, ms: other programs make it no longer, so it can be compared between busy machines. */
  cpuMsPerSecond: number;
  /** Tasks of the main thread above 50 ms, which a reader feels. */
  longTasks: number;
};
export type Scrolled = Drawn & { scrolledPx: number };

const LONG_TASK_US = 50_000;
/** Pixels per second: about 190 rows. */
const SPEED_PX = 3_000;
const DISTANCE_PX = 12_000;
/** A list of this height can be scrolled so far: below its end, frames would show nothing new and not be drawn. */
export const SCROLLED_LIST_PX = DISTANCE_PX + 1_000;

const traceFile = z.object({
  traceEvents: z.array(
    z.looseObject({
      name: z.string(),
      ph: z.string(),
      ts: z.number().default(0),
      dur: z.number().default(0),
      tdur: z.number().default(0),
      pid: z.number(),
      tid: z.number(),
      args: z.looseObject({ name: z.string().optional() }).default({}),
    }),
  ),
});
type TraceEvent = z.infer<typeof traceFile>["traceEvents"][number];

/** Scrolls the timeline of a page with a wheel, as a reader does. */
export async function scroll(browser: Browser, page: Page): Promise<Scrolled> {
  const rows = page.locator(".rows");
  await rows.scrollIntoViewIfNeeded();
  const box = await rows.boundingBox();
  if (box === null) throw new Error("the page has no timeline");
  const at = { x: box.x + box.width / 2, y: box.y + box.height / 2 };
  const gesture = { ...at, gestureSourceType: "mouse" as const, speed: SPEED_PX };
  const cdp = await page.context().newCDPSession(page);
  // The first pixels, which load what scrolling needs, are not measured.
  await cdp.send("Input.synthesizeScrollGesture", { ...gesture, yDistance: -200 });
  const before = await scrollTopOf(page);
  const drawn = await traced(browser, page, () =>
    cdp.send("Input.synthesizeScrollGesture", { ...gesture, yDistance: -DISTANCE_PX }),
  );
  return { ...drawn, scrolledPx: (await scrollTopOf(page)) - before };
}

/** Watches a page for some time that nobody touches. */
export function watch(browser: Browser, page: Page, forMs: number): Promise<Drawn> {
  return traced(browser, page, () => sleep(forMs));
}

async function traced(browser: Browser, page: Page, act: () => Promise<unknown>): Promise<Drawn> {
  await browser.startTracing(page, {
    categories: [
      "-*",
      "toplevel",
      "__metadata",
      "devtools.timeline",
      "disabled-by-default-devtools.timeline",
      "disabled-by-default-devtools.timeline.frame",
    ],
  });
  const startMs = performance.now();
  await act();
  const tookMs = performance.now() - startMs;
  const trace = traceFile.parse(JSON.parse((await browser.stopTracing()).toString("utf8")));
  return figuresOf(trace.traceEvents, tookMs);
}

async function scrollTopOf(page: Page): Promise<number> {
  return Number(await page.evaluate('document.querySelector(".rows").scrollTop'));
}

function figuresOf(events: readonly TraceEvent[], tookMs: number): Drawn {
  // The thread of the page is the renderer's that drew frames.
  const drawn = events.filter(({ name }) => name === "DrawFrame");
  const processes = new Set(drawn.map(({ pid }) => pid));
  const mains = events.filter(
    ({ ph, name, args, pid }) =>
      ph === "M" && name === "thread_name" && args.name === "CrRendererMain" && processes.has(pid),
  );
  const isMain = (event: TraceEvent): boolean => mains.some(({ pid, tid }) => pid === event.pid && tid === event.tid);
  const tasks = events.filter((event) => event.ph === "X" && event.name === "RunTask" && isMain(event));
  const workUs = tasks.reduce((sum, { dur }) => sum + dur, 0);
  return {
    framesPerSecond: (drawn.length / tookMs) * 1_000,
    workMsPerFrame: workUs / 1_000 / Math.max(1, drawn.length),
    cpuMsPerSecond: tasks.reduce((sum, { tdur }) => sum + tdur, 0) / tookMs,
    longTasks: tasks.filter(({ dur }) => dur > LONG_TASK_US).length,
  };
}
