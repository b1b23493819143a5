/** Runs a program of `programs` as a user would, with the run's token as its key. */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { ClientRun, Clients } from "../world.ts";
import type { EnvironmentName } from "./clients.ts";
import { pythonOf } from "./environments.ts";

/** Some programs load for ten seconds on a busy machine, and longer when they run first and Python compiles their packages. */
export const TIME_MAX_MS = 400_000;

export type Ended = { status: number | null; printed: string; complaint: string };

/** Where the clients and the stub find the gateway. */
export const variablesOf = ({ baseUrl, gateway }: Clients, { token }: ClientRun): Record<string, string> => ({
  OPENAI_BASE_URL: baseUrl,
  OPENAI_API_KEY: token,
  ANTHROPIC_BASE_URL: gateway.url,
  ANTHROPIC_API_KEY: token,
  FANOUT_URL: gateway.url,
  FANOUT_TOKEN: token,
});

/** `home`: a folder of the program's own, in which it finds modules. */
export async function runProgram(
  { environment, program, home }: { environment: EnvironmentName; program: string; home: string },
  variables: Record<string, string>,
): Promise<Ended> {
  const child = spawn(pythonOf(environment), [join(import.meta.dirname, "programs", program)], {
    cwd: home,
    env: {
      PATH: process.env["PATH"] ?? "",
      HOME: home,
      PYTHONPATH: home,
      // Its list of prices is otherwise fetched.
      LITELLM_LOCAL_MODEL_COST_MAP: "True",
      ...variables,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  const [status, printed, complaint] = await Promise.all([ended, text(child.stdout), text(child.stderr)]);
  return { status, printed, complaint };
}
