/**
 * The bench's own Python environment, with the peers that PyPI has. It is in bench/.data, which git ignores, and is made only
 * when peers are requested.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** What is installed: one version, so that figures can be repeated. */
const PEER_PACKAGES = ["litellm[proxy]==1.106.2", "diskcache==5.6.3"] as const;
export const LITELLM_VERSION = "1.106.2";

const FOLDER = join(import.meta.dirname, "../.data/peers", `litellm-${LITELLM_VERSION}`);
/** Written last: an environment without it is half made. */
const WHOLE = join(FOLDER, "whole");

/** The path of a program of the environment, which is made first if it does not exist. That takes a minute. */
export function peerProgram(name: string): string {
  if (!existsSync(WHOLE)) install();
  return join(FOLDER, "bin", name);
}

function install(): void {
  rmSync(FOLDER, { recursive: true, force: true });
  mkdirSync(FOLDER, { recursive: true });
  run("python3", ["-m", "venv", FOLDER]);
  run(join(FOLDER, "bin/pip"), ["install", "--quiet", "--disable-pip-version-check", ...PEER_PACKAGES]);
  writeFileSync(WHOLE, "");
}

function run(command: string, args: readonly string[]): void {
  console.error(`${command} ${args.join(" ")}`);
  const { status } = spawnSync(command, args, { stdio: ["ignore", "ignore", "inherit"] });
  if (status !== 0) throw new Error(`${command} ended with ${status}: --peers needs python3 with venv, and PyPI`);
}
