/** Bodies that are the plan of a model instead of one JSON object. */
import type { Context } from "hono";
import type { AppEnv } from "../../context.ts";
import { mediaType } from "../../../contract/body.ts";
import { jsonLines, type PlanLines } from "../../../run/graph/plan/lines.ts";
import { llmCompilerLines } from "../../../run/graph/plan/llm-compiler.ts";

/** By content type. */
const PLAN_READERS: ReadonlyMap<string, () => PlanLines<unknown>> = new Map([
  ["application/x-ndjson", jsonLines],
  ["text/x-llmcompiler", llmCompilerLines],
]);

/** What reads the body of a request as a plan; undefined if it is none. */
export function planReaderOf(c: Context<AppEnv>): (() => PlanLines<unknown>) | undefined {
  return PLAN_READERS.get(mediaType(c.req.raw));
}
