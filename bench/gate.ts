/**
 * `npm run bench:gate [-- --only=shared,stop] [--slots=10000] [--rounds=5] [--deaths=20]`: one key and several runs against providers with real
 * limits. Exit status 1 if a guarantee does not hold. README.md explains the figures.
 */
import { parseArgs } from "node:util";
import { measureCost } from "./gate/cost.ts";
import { measureCrash } from "./gate/crash.ts";
import { measureExchange } from "./gate/exchange.ts";
import { measureFairness } from "./gate/fairness.ts";
import { measureHedge } from "./gate/hedge.ts";
import { measureShared } from "./gate/shared.ts";
import { measureStop } from "./gate/stop.ts";
import { measureUnhinted } from "./gate/unhinted.ts";
import { namesIn, runParts } from "./parts/parts.ts";
import type { Part } from "./parts/row.ts";

const { values } = parseArgs({
  options: {
    only: { type: "string", default: "" },
    slots: { type: "string", default: "10000" },
    shared: { type: "string", default: "400" },
    rounds: { type: "string", default: "5" },
    deaths: { type: "string", default: "20" },
  },
});

const PARTS: Readonly<Record<string, () => Promise<Part>>> = {
  exchange: measureExchange,
  shared: () => measureShared(Number(values.shared)),
  unhinted: measureUnhinted,
  stop: measureStop,
  fairness: () => measureFairness(Number(values.slots)),
  hedge: measureHedge,
  crash: () => measureCrash(Number(values.deaths)),
  cost: () => measureCost(Number(values.rounds)),
};

await runParts(PARTS, { only: namesIn(values.only), file: "gate.json" });
