/** Bodies that are the plan of a model instead of one JSON object. */
import type { Context } from "hono";
import { parametersOf } from "../../../tools/input.ts";
import { RunCaller } from "../../../objects/clients/caller.ts";
import type { StoredDocument } from "../../../objects/methods/runs.ts";
import type { AppEnv } from "../../context.ts";
import { mediaType } from "../../../contract/body.ts";
import { jsonLines, type PlanLines } from "../../../run/graph/plan/lines.ts";
import { llmCompilerLines } from "../../../run/graph/plan/llm-compiler.ts";

/** What reads the body of a request as a plan; undefined if it is none. Steps of a plan call the tools of the run. */
export async function planLinesOf(c: Context<AppEnv>, runId: string): Promise<PlanLines<unknown> | undefined> {
  switch (mediaType(c.req.raw)) {
    case "application/x-ndjson":
      return jsonLines();
    case "text/x-llmcompiler":
      return llmCompilerLines(await toolsOfRun(c, runId));
    default:
      return undefined;
  }
}

/** A tool that steps and planned tasks may call. */
type RunTool = { name: string; description: string | null; parameters: Readonly<Record<string, unknown>> | undefined };

/** The tools that the code of a run may call. */
export async function toolsOfRun(c: Context<AppEnv>, runId: string): Promise<RunTool[]> {
  const run = new RunCaller(c.env, runId);
  const document = await run.callWithRetry<StoredDocument | null>((stub) => stub.document(null));
  return (document?.tools ?? []).map((tool) => {
    const { name, description } = tool;
    return { name, description, parameters: parametersOf(tool) ?? undefined };
  });
}
