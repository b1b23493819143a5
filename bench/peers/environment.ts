/**
 * The bench's own Python environments, one for each peer that PyPI has, with the versions that docs/benchmarks.md names. They are in
 * bench/.data, which git ignores, and are made only when a peer is requested.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** What pip installs: one version, so that figures can be repeated. */
export type Package = {
  name: string;
  version: string;
  /** In brackets behind the name, such as `proxy`. */
  extra?: string;
  /** What it needs beside itself, each with its version. */
  others?: readonly string[];
  /** The least minor version of Python 3 that it runs with. */
  pythonMinorMin: number;
};

const FOLDER = join(import.meta.dirname, "../.data/peers");
/** Written last: an environment without it is half made. */
const WHOLE = "whole";

/** What could not be installed, so that nobody tries again in this process. */
const failed = new Map<string, Error>();

/** What pip is given. */
export function requirementsOf({ name, version, extra, others = [] }: Package): string[] {
  return [`${name}${extra === undefined ? "" : `[${extra}]`}==${version}`, ...others];
}

/** The path of a program of a package, which is installed first if it is not. That takes up to a minute. */
export function programOf(wanted: Package, program: string): string {
  const folder = join(FOLDER, `${wanted.name}-${wanted.version}`);
  const before = failed.get(folder);
  if (before !== undefined) throw before;
  if (!existsSync(join(folder, WHOLE))) {
    try {
      install(wanted, folder);
    } catch (error) {
      failed.set(folder, error instanceof Error ? error : new Error(String(error)));
      throw error;
    }
  }
  return join(folder, "bin", program);
}

function install(wanted: Package, folder: string): void {
  const python = pythonSince(wanted.pythonMinorMin);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  run(python, ["-m", "venv", folder]);
  run(join(folder, "bin/pip"), ["install", "--quiet", "--disable-pip-version-check", ...requirementsOf(wanted)]);
  writeFileSync(join(folder, WHOLE), "");
}

/** Versions that are looked for by their own name if `python3` is too old, newest first. */
const PYTHON_MINORS = [14, 13, 12];

function pythonSince(minorMin: number): string {
  const names = ["python3", ...PYTHON_MINORS.filter((minor) => minor >= minorMin).map((minor) => `python3.${minor}`)];
  const found = names.find((name) => {
    const { status, stdout } = spawnSync(name, ["-c", "import sys; print(sys.version_info[1])"], { encoding: "utf8" });
    return status === 0 && Number(stdout) >= minorMin;
  });
  if (found === undefined) throw new Error(`it needs Python 3.${minorMin}, and neither of ${names.join(", ")} is one`);
  return found;
}

function run(command: string, args: readonly string[]): void {
  console.error(`${command} ${args.join(" ")}`);
  const { status, stderr } = spawnSync(command, args, { stdio: ["ignore", "ignore", "pipe"], encoding: "utf8" });
  if (status === 0) return;
  console.error(stderr);
  const why =
    stderr
      .trim()
      .split("\n")
      .findLast((line) => line.startsWith("ERROR")) ?? "it needs python3 with venv, and PyPI";
  throw new Error(`its installation ended with ${status}: ${why}`);
}
