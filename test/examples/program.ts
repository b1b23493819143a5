/** Programs of examples/ as processes: started as their reader would, and looked at from outside. */
import { spawn } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** What a program printed until it ended. `status` is null where a signal ended it. */
export type Ended = { status: number | null; printed: string; complaint: string };

export type Started = { pid: number; ended: Promise<Ended> };

/** A program of examples/, for a process that works in another folder. */
export const exampleAt = (path: string): string => join(ROOT, "examples", path);

/** Starts a program in the checkout, or in `cwd`. Only `env` and PATH reach it. */
export function startProgram(
  command: string,
  args: readonly string[],
  env: Record<string, string>,
  cwd: string = ROOT,
): Started {
  const child = spawn(command, args, {
    cwd,
    env: { PATH: process.env["PATH"] ?? "", PYTHONDONTWRITEBYTECODE: "1", PYTHONIOENCODING: "utf-8", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const closed = new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  const ended = Promise.all([closed, text(child.stdout), text(child.stderr)]).then(([status, printed, complaint]) => ({
    status,
    printed,
    complaint,
  }));
  return { pid: child.pid ?? 0, ended };
}

/** A process as the system shows it to its user: its number, its command line, its variables by name. */
export type Process = { pid: number; commandLine: string; variables: Map<string, string> };

/** All processes below one, those nearest to it first. */
export async function processesBelow(pid: number): Promise<Process[]> {
  const parents = await Promise.all(
    (await readdir("/proc"))
      .filter((name) => /^\d+$/.test(name))
      .map(async (name) => [Number(name), await parentOf(name)] as const),
  );
  const below: Process[] = [];
  let level = [pid];
  while (level.length > 0) {
    const above = level;
    level = parents.flatMap(([child, parent]) => (parent !== null && above.includes(parent) ? [child] : []));
    below.push(...(await Promise.all(level.map(processOf))));
  }
  return below;
}

/** The process itself, and all below it. */
export async function familyOf(pid: number): Promise<Process[]> {
  return [await processOf(pid), ...(await processesBelow(pid))];
}

/** Null where it has ended in the meantime. */
async function parentOf(pid: string): Promise<number | null> {
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
  const parent = /^PPid:\s*(\d+)$/m.exec(status)?.[1];
  return parent === undefined ? null : Number(parent);
}

async function processOf(pid: number): Promise<Process> {
  const read = async (file: string) => (await readFile(`/proc/${pid}/${file}`, "utf8").catch(() => "")).split("\0");
  const variables = (await read("environ")).flatMap((line): [string, string][] => {
    const at = line.indexOf("=");
    return at < 1 ? [] : [[line.slice(0, at), line.slice(at + 1)]];
  });
  return { pid, commandLine: (await read("cmdline")).join(" "), variables: new Map(variables) };
}
