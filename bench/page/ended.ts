/** The page of a run that has ended, with many calls: how soon something is there, and how it scrolls. */
import { z } from "zod";
import { atLeast, atMost, exact, plain, type Part, type Row } from "../parts/row.ts";
import { openRunPage, startPlace, type Run } from "./place.ts";
import { scroll } from "./scroll.ts";

const WAIT_MS = 60_000;
const LOAD_MS = 120_000;

export async function measureEnded(calls: number): Promise<Part> {
  await using place = await startPlace();
  const run = await place.open({ name: "ended", budget: { usd: 100 }, max_parallel: 512 });
  await makeCalls(run, calls);
  const { page, faults } = await openRunPage(place, run);
  const shown = `${calls.toLocaleString("en-US")} of ${calls.toLocaleString("en-US")}`;
  await page.getByText(shown).waitFor({ timeout: LOAD_MS });
  const wholeMs = Number(await page.evaluate("performance.now()"));
  const paintMs = Number(await page.evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime"));
  const timelineMs = Number(await page.evaluate("benchSeen.timelineMs"));
  const scrolled = await scroll(place.browser, page);
  const script = Number(
    await page.evaluate("performance.getEntriesByType('resource').filter((each) => each.name.endsWith('.js')).length"),
  );
  const rows: Row[] = [
    atMost("first paint", paintMs, 1_000, " ms"),
    atMost("the timeline is there", timelineMs, 1_000, " ms"),
    plain(`all ${calls} calls are there`, `${Math.round(wholeMs)} ms`),
    atLeast("frames per second while it scrolls", scrolled.framesPerSecond, 55),
    atMost("work of the main thread per frame", scrolled.workMsPerFrame, 1_000 / 60, " ms"),
    plain("CPU time of the main thread per second while it scrolls", `${Math.round(scrolled.cpuMsPerSecond)} ms`),
    plain("tasks above 50 ms while it scrolls", String(scrolled.longTasks)),
    plain("scrolled", `${scrolled.scrolledPx} px`),
    exact("messages on the console, requests to other hosts", String(faults.length), "0", faults.length === 0),
    exact("scripts", String(script), "1", script === 1),
  ];
  await page.context().close();
  return { rows, faults };
}

const looked = z.looseObject({ status: z.string() });

async function makeCalls(run: Run, calls: number): Promise<void> {
  const prompts = Array.from({ length: calls }, (_, index) => `Call ${index}`);
  const body = JSON.stringify({ prompts, model: "sim/echo" });
  const opened = await run.send("/batch", { method: "POST", headers: { prefer: "respond-async" }, body });
  const at = opened.headers.get("location") ?? "";
  await opened.arrayBuffer();
  for (let status = "running"; status === "running";) {
    ({ status } = looked.parse(await (await run.send(`${at}?wait_ms=${WAIT_MS}`)).json()));
  }
  await (await run.send(`/runs/${run.id}/close`, { method: "POST" })).arrayBuffer();
}
