/**
 * Runs a program of this folder in a process of its own, which has ended when its output is there: what it loads (esbuild,
 * Miniflare, schemas) would stay in the process that runs the gateway for days.
 */
import { execFile } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { LocalSetting } from "./plan.ts";
import type { Usability, UsabilityRequest } from "./readiness-program.ts";

/** More than any of them prints, bytes: what `execFile` may collect. */
const OUTPUT_BYTES_MAX = 64 * 1024 * 1024;

const FOLDER = dirname(fileURLToPath(import.meta.url));

/** What the program prints if its standard input is `input` as JSON. Rejects with what it writes to stderr if it fails. */
export function apart(program: string, input: unknown): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const options = { maxBuffer: OUTPUT_BYTES_MAX, encoding: "buffer" } as const;
    const child = execFile(process.execPath, [join(FOLDER, program)], options, (error, output, messages) => {
      if (error === null) resolve(output);
      else reject(new Error(messages.toString().trim() || error.message));
    });
    // A program that ends before it reads has failed, and says why.
    child.stdin?.on("error", () => undefined).end(JSON.stringify(input));
  });
}

/** A sentence for each upstream of the setting to whose host no connection can be made. */
export async function unreachableApart(setting: LocalSetting): Promise<string[]> {
  try {
    const found: unknown = JSON.parse((await apart("reach-program.ts", setting)).toString());
    return Array.isArray(found) ? found.filter((each) => typeof each === "string") : [];
  } catch (error) {
    return [
      `whether the upstreams can be reached is not known: ${error instanceof Error ? error.message : String(error)}`,
    ];
  }
}

/** Whether the operator can use the gateway, and what it warns of. */
export async function usabilityApart(request: UsabilityRequest): Promise<Usability> {
  return JSON.parse((await apart("readiness-program.ts", request)).toString());
}
