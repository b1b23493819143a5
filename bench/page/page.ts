/**
 * `npm run bench:page [-- --only=start,ended,running] [--start=1000] [--ended=50000] [--running=2000]`: how fast the pages are in a real
 * Chromium. Exit status 1 if a guarantee does not hold. README.md explains the figures.
 */
import { parseArgs } from "node:util";
import { measureEnded } from "./ended.ts";
import { measureStart } from "./start.ts";
import { measureRunning } from "./running.ts";
import { namesIn, runParts } from "../parts/parts.ts";
import type { Part } from "../parts/row.ts";

const { values } = parseArgs({
  options: {
    only: { type: "string", default: "" },
    start: { type: "string", default: "1000" },
    ended: { type: "string", default: "50000" },
    running: { type: "string", default: "2000" },
  },
});

const PARTS: Readonly<Record<string, () => Promise<Part>>> = {
  start: () => measureStart(Number(values.start)),
  ended: () => measureEnded(Number(values.ended)),
  running: () => measureRunning(Number(values.running)),
};

await runParts(PARTS, { only: namesIn(values.only), file: "page.json" });
