/** Python packages of tests, which `.ci/run` installs beside this file as python-requirements.txt says. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";

/** Their folder. */
export const PACKAGES = join(import.meta.dirname, "python-packages");

/** Runs a program with these packages. `input` is its standard input; returns what it prints. Throws with its complaint. */
export function runWithPackages(program: string, input: string): string {
  const env = { PATH: process.env["PATH"] ?? "", PYTHONPATH: PACKAGES, PYTHONDONTWRITEBYTECODE: "1" };
  const { status, stdout, stderr } = spawnSync("python3", ["-c", program], { env, input, encoding: "utf8" });
  if (status !== 0) throw new Error(`python3 ended with ${status}: ${stderr}`);
  return stdout;
}

/** Whether a module can be imported; else the name of what is missing. */
export function missingPackage(module: string): string | null {
  const env = { PATH: process.env["PATH"] ?? "", PYTHONPATH: PACKAGES };
  return spawnSync("python3", ["-c", `import ${module}`], { env }).status === 0 ? null : `Python package ${module}`;
}
