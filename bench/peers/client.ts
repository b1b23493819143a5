/** Runs client.py in LiteLLM's environment, which has OpenAI's client: a program without a gateway. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { z } from "zod";
import type { PoolResult } from "../field/pool.ts";
import { programOf } from "./environment.ts";
import { LITELLM_PACKAGE } from "./litellm.ts";

export type GatherPlan = {
  /** Ends in `/v1`. */
  url: string;
  model: string;
  calls: number;
  concurrency: number;
  maxTokens: number;
};

const result = z.object({ answered: z.number(), refused: z.number(), wallMs: z.number() });
const CLIENT_MS_MAX = 180_000;

/** The wall time is the program's own, without its start. */
export async function runGather(plan: GatherPlan): Promise<PoolResult> {
  const file = fileURLToPath(new URL("client.py", import.meta.url));
  const args = [file, JSON.stringify(plan)];
  const { stdout } = await promisify(execFile)(programOf(LITELLM_PACKAGE, "python"), args, { timeout: CLIENT_MS_MAX });
  return result.parse(JSON.parse(stdout.trim().split("\n").at(-1) ?? ""));
}
