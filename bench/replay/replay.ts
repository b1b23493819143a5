/**
 * `npm run bench:replay [-- --only=lookup,rerun,kills] [--kills=100] [--calls=1000]`: what a program that runs again
 * pays, and how long it takes. Exit status 1 if a guarantee does not hold. README.md explains the figures.
 */
import { parseArgs } from "node:util";
import { measureKills } from "./kills.ts";
import { measureLookup } from "./lookup.ts";
import { measureRerun } from "./rerun.ts";
import { namesIn, runParts } from "../parts/parts.ts";
import type { Part } from "../parts/row.ts";

const { values } = parseArgs({
  options: {
    only: { type: "string", default: "" },
    kills: { type: "string", default: "100" },
    calls: { type: "string", default: "1000" },
  },
});

const PARTS: Readonly<Record<string, () => Promise<Part>>> = {
  lookup: () => Promise.resolve(measureLookup()),
  rerun: () => measureRerun(Number(values.calls)),
  kills: () => measureKills(Number(values.kills), Number(values.calls)),
};

await runParts(PARTS, { only: namesIn(values.only), file: "replay.json" });
