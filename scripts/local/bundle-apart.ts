/**
 * Bundles the Worker in a process of its own: esbuild and the bundle's parts leave 20 MB in the process that bundles, and a
 * gateway runs for days.
 */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { ROOT } from "../root.ts";

/** More than the bundle has, bytes: what `execFile` may collect. */
const OUTPUT_BYTES_MAX = 64 * 1024 * 1024;

const PROGRAM = join(ROOT, "scripts", "local", "bundle-program.ts");

/** The Worker at `entryPoint`, a path from `root`, as one module. Rejects with esbuild's list of errors. */
export function bundledApart(entryPoint: string, root: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const args = [PROGRAM, entryPoint, root];
    execFile(process.execPath, args, { maxBuffer: OUTPUT_BYTES_MAX }, (error, code, messages) => {
      if (error === null) resolve(code);
      else reject(new Error(messages.trim() || error.message));
    });
  });
}
