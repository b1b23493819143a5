/**
 * `npm run bench:graph [-- --only=shapes,plan,tools,size,crash] [--tasks=10000] [--rounds=3] [--kills=20]`: graphs against the longest chain
 * of their calls, against a plain batch, and under SIGKILL. Exit status 1 if a guarantee does not hold. README.md explains the
 * figures.
 */
import { parseArgs } from "node:util";
import { measureCrash } from "./graph/crash.ts";
import { measurePlans } from "./graph/plan.ts";
import { measureShapes } from "./graph/shapes.ts";
import { measureSize } from "./graph/size.ts";
import { measureTools } from "./graph/tools.ts";
import { namesIn, runParts } from "./parts/parts.ts";
import type { Part } from "./parts/row.ts";

const { values } = parseArgs({
  options: {
    only: { type: "string", default: "" },
    tasks: { type: "string", default: "10000" },
    rounds: { type: "string", default: "3" },
    kills: { type: "string", default: "20" },
  },
});

const PARTS: Readonly<Record<string, () => Promise<Part>>> = {
  shapes: measureShapes,
  plan: measurePlans,
  tools: measureTools,
  size: () => measureSize(Number(values.tasks), Number(values.rounds)),
  crash: () => measureCrash(Number(values.kills)),
};

await runParts(PARTS, { only: namesIn(values.only), file: "graph.json" });
