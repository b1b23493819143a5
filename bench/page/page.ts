/**
 * `npm run bench:page [-- --only=ended,running] [--ended=50000] [--running=2000]`: how fast the page of a run is in a real
 * Chromium. Exit status 1 if a guarantee does not hold. README.md explains the figures.
 */
import { parseArgs } from "node:util";
import { measureEnded } from "./ended.ts";
import { measureRunning } from "./running.ts";
import { runParts } from "../parts/parts.ts";
import type { Part } from "../parts/row.ts";

const { values } = parseArgs({
  options: {
    only: { type: "string", default: "" },
    ended: { type: "string", default: "50000" },
    running: { type: "string", default: "2000" },
  },
});

const PARTS: Readonly<Record<string, () => Promise<Part>>> = {
  ended: () => measureEnded(Number(values.ended)),
  running: () => measureRunning(Number(values.running)),
};

await runParts(PARTS, { only: values.only, file: "page.json" });
