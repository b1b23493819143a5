/** Runs programs of the real python3 with a stub importable. */
import { spawn, spawnSync } from "node:child_process";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";

const STUBS = fileURLToPath(new URL("../../stubs", import.meta.url));

/** The folder of a stub, as in `/stubs/:lang`, and its module. */
const MODULES = { python: "fanout", "python-async": "fanout_async" };

/** Whether this machine has a python3. */
export const hasPython = spawnSync("python3", ["--version"]).status === 0;

/**
 * The JSON value that a program prints. Only `env` and PATH reach it. Rejects with its standard error if it fails, or
 * writes there. `json` and everything of the stub are imported for it; `report(x)` prints a value.
 */
export async function runPython(
  program: string,
  env: Record<string, string>,
  stub: keyof typeof MODULES = "python",
): Promise<unknown> {
  const source = `import json\nfrom ${MODULES[stub]} import *\ndef report(x): print(json.dumps(x))\n${program}`;
  const child = spawn("python3", ["-c", source], {
    env: { PATH: process.env["PATH"] ?? "", PYTHONPATH: `${STUBS}/${stub}`, PYTHONDONTWRITEBYTECODE: "1", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const status = new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  const [printed, complaint, code] = await Promise.all([text(child.stdout), text(child.stderr), status]);
  if (code !== 0 || complaint !== "") throw new Error(`python3 ended with ${code}: ${complaint}`);
  return JSON.parse(printed);
}
