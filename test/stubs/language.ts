/** A language with a stub: how its driver (README.md) is built and started, and how its output is read. */
import { spawn, spawnSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** Where `npm install` in test/stubs/runtimes installs runtimes and formatters. */
export const RUNTIMES = process.env["FANOUT_RUNTIMES"] ?? fileURLToPath(new URL("runtimes", import.meta.url));

/** A program with its arguments. */
export type Command = readonly [string, ...string[]];

/** Succeeds if Pyodide is installed. */
export const PYODIDE: Command = ["test", "-e", join(RUNTIMES, "node_modules/pyodide/package.json")];

export type Language = {
  /** As in `/stubs/:lang`. */
  name: string;
  /** Commands that succeed if the runtime is on this machine: a compiler and what runs its output, for example. */
  needs: readonly Command[];
  /** Builds the driver into a folder of its own, once. The commands run in the repository's root. */
  build?: (folder: string) => readonly Command[];
  /** Starts the driver in the folder; the test adds its arguments. */
  run: (folder: string) => Command;
  /** Further variables for building and running. */
  env?: (folder: string) => Record<string, string>;
};

/** A record of a driver: a text or a failure. */
export type Record_ =
  | { kind: "text"; text: string }
  | {
      kind: "failure";
      code: string;
      status: number | null;
      retryable: boolean;
      attempts?: number;
      chargedUsd?: number;
    };

/** The first of the needs that this machine lacks, or null. */
export function missingOf({ needs }: Pick<Language, "needs">): string | null {
  const missing = needs.find(([command, ...args]) => spawnSync(command, args, { env: bare() }).status !== 0);
  return missing?.join(" ") ?? null;
}

/** Builds a language's driver. Throws with the compiler's output. */
export function buildDriver(language: Pick<Language, "build" | "env">, folder: string): void {
  for (const [command, ...args] of language.build?.(folder) ?? []) {
    const env = { ...bare(), ...language.env?.(folder) };
    const { status, stdout, stderr } = spawnSync(command, args, { cwd: ROOT, env, encoding: "utf8" });
    if (status !== 0) throw new Error(`${command} ended with ${status}:\n${stdout}${stderr}`);
  }
}

export type RunningDriver = {
  pid: number;
  /** The complete records so far. */
  records: () => Record_[];
  /** All records, once the driver has ended with status 0. */
  ended: Promise<Record_[]>;
};

/** Starts a driver. Of this process's environment it receives only what programs need to run. */
export function startDriver(
  language: Language,
  { folder, args, env }: { folder: string; args: readonly string[]; env: Record<string, string> },
): RunningDriver {
  const [command, ...first] = language.run(folder);
  const child = spawn(command, [...first, ...args], {
    cwd: folder,
    env: { ...bare(), ...language.env?.(folder), ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const written: Buffer[] = [];
  let standardError = "";
  child.stdout.on("data", (chunk: Buffer) => written.push(chunk));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (standardError += text));
  const records = (): Record_[] => recordsOf(Buffer.concat(written).toString("utf8"));
  const ended = new Promise<Record_[]>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => {
      const rest = Buffer.concat(written).toString("utf8").split("\u001e").at(-1);
      if (code === 0 && rest === "") resolve(records());
      else
        reject(
          new Error(`${command} ended with ${code}; after its last record: ${rest}; standard error: ${standardError}`),
        );
    });
  });
  ended.catch(() => undefined);
  return { pid: child.pid ?? 0, records, ended };
}

function recordsOf(text: string): Record_[] {
  const whole = text.split("\u001e").slice(0, -1);
  return whole.map((record) => {
    if (!record.startsWith("\u0015")) return { kind: "text", text: record };
    const [code = "", status = "", retryable = "", attempts = "", charged = ""] = record.slice(1).split("\u001f");
    const used = attempts === "" ? {} : { attempts: Number(attempts), chargedUsd: Number(charged) };
    const failed = { code, status: status === "" ? null : Number(status), retryable: retryable === "true" };
    return { kind: "failure", ...failed, ...used };
  });
}

/** Variables that programs and compilers need, and none that a stub reads. */
function bare(): Record<string, string> {
  const names = ["PATH", "HOME", "RUSTUP_HOME", "CARGO_HOME", "GOPATH"];
  const values = names.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]]));
  return { LANG: "C.UTF-8", FANOUT_RUNTIMES: RUNTIMES, ...Object.fromEntries(values) };
}
