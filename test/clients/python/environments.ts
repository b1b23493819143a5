/** Where the Python clients are installed: an environment per lock in `locks`, made by `install.ts`. */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PACKAGES } from "../../support/python-packages.ts";
import { ENVIRONMENTS, PYTHON_CLIENTS, type EnvironmentName, type PythonClient } from "./clients.ts";

/** Their oldest Python: an older one cannot install the locks. */
const PYTHON_MIN = "3.11";

const folderOf = (name: EnvironmentName): string => join(import.meta.dirname, ".environments", name);
const lockOf = (name: EnvironmentName): string => join(import.meta.dirname, "locks", `${name}.txt`);
/** A copy of the lock, written last: an environment without it is half made, or made of another lock. */
const wholeOf = (name: EnvironmentName): string => join(folderOf(name), "lock.txt");

/** The interpreter of an environment. */
export const pythonOf = (name: EnvironmentName): string => join(folderOf(name), "bin", "python");

/** Whether an environment holds what its lock names; else the name of what is missing. */
export function missingEnvironment(name: EnvironmentName): string | null {
  const isWhole =
    existsSync(wholeOf(name)) && readFileSync(wholeOf(name), "utf8") === readFileSync(lockOf(name), "utf8");
  return isWhole ? null : `Python environment ${name}`;
}

/** The version of a client in the lock of its environment. Throws if it is not there. */
export function versionOf({ package: name, environment }: Pick<PythonClient, "package" | "environment">): string {
  const plain = name.replace(/\[.*/, "");
  const version = new RegExp(`^${plain}==(\\S+)`, "m").exec(readFileSync(lockOf(environment), "utf8"))?.[1];
  if (version === undefined) throw new Error(`${lockOf(environment)} has no ${plain}`);
  return version;
}

/** Installs what the lock names, from wheels only, unless it is there. Throws if uv fails. */
export function install(name: EnvironmentName): void {
  if (missingEnvironment(name) === null) return;
  rmSync(folderOf(name), { recursive: true, force: true });
  uv(["venv", "--python", "python3", folderOf(name)]);
  uv([
    "pip",
    "install",
    "--python",
    pythonOf(name),
    "--only-binary",
    ":all:",
    "--no-deps",
    "--requirement",
    lockOf(name),
  ]);
  writeFileSync(wholeOf(name), readFileSync(lockOf(name)));
}

/** Writes the lock anew, with the newest versions that fit each other. */
export function lock(name: EnvironmentName): void {
  const packages = PYTHON_CLIENTS.filter(({ environment }) => environment === name).map((client) => client.package);
  const versions = ["--universal", "--python-version", PYTHON_MIN, "--only-binary", ":all:", "--upgrade"];
  const text = ["--no-annotate", "--no-header", "--output-file", lockOf(name)];
  uv(["pip", "compile", ...versions, ...text, "-"], [ENVIRONMENTS[name], ...packages].join("\n"));
}

/** Runs uv: that of python-requirements.txt, or the machine's. */
function uv(args: readonly string[], input = ""): void {
  const own = join(PACKAGES, "bin", "uv");
  const { PIP_INDEX_URL } = process.env;
  // A machine that gives pip another index means it for uv too.
  const index = PIP_INDEX_URL === undefined ? {} : { UV_DEFAULT_INDEX: PIP_INDEX_URL };
  const env = { ...process.env, ...index, UV_PYTHON_DOWNLOADS: "never" };
  const { status, error } = spawnSync(existsSync(own) ? own : "uv", ["--quiet", "--system-certs", ...args], {
    env,
    input,
    stdio: ["pipe", "ignore", "inherit"],
  });
  if (status !== 0) throw new Error(`uv ${args.slice(0, 2).join(" ")} ended with ${status}: ${error?.message ?? ""}`);
}
