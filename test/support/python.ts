/** Runs programs of the real python3 with the stub importable. */
import { spawn, spawnSync } from "node:child_process";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";

const STUB_FOLDER = fileURLToPath(new URL("../../stubs/python", import.meta.url));

/** Whether this machine has a python3. */
export const hasPython = spawnSync("python3", ["--version"]).status === 0;

/**
 * The JSON value that a program prints. Only `env` and PATH reach it. Rejects with its standard error if it fails.
 * `json` and everything of the stub are imported for it; `report(x)` prints a value.
 */
export async function runPython(program: string, env: Record<string, string>): Promise<unknown> {
  const source = `import json\nfrom fanout import *\ndef report(x): print(json.dumps(x))\n${program}`;
  const child = spawn("python3", ["-c", source], {
    env: { PATH: process.env["PATH"] ?? "", PYTHONPATH: STUB_FOLDER, PYTHONDONTWRITEBYTECODE: "1", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const status = new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  const [printed, complaint, code] = await Promise.all([text(child.stdout), text(child.stderr), status]);
  if (code !== 0) throw new Error(`python3 ended with ${code}: ${complaint}`);
  return JSON.parse(printed);
}
