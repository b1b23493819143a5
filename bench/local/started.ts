/** `npm start` as a person starts it, with a configuration of the bench's own: npm, its shell, the gateway and workerd. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT } from "../../scripts/root.ts";
import { MODEL } from "../load/prompts.ts";
import { cpuMsOf, freePort, type Server } from "../servers/process.ts";
import { ADMIN_KEY } from "../servers/servers.ts";

/** One process of `npm start`. */
export type Process = { pid: number; name: string; rssBytes: number };

export type Started = Server & {
  /** Every process of `npm start` that runs now. */
  processes: () => Process[];
};

const START_MS_MAX = 60_000;
const OUTPUT_CHARS_MAX = 4_000;
/** Time for the gateway to stop, ms, before its processes are killed. */
const STOP_MS_MAX = 5_000;

/** Starts it and waits until it prints that it is ready. Disposing ends all of its processes and deletes its folder. */
export async function startNpm(upstream: Server): Promise<Started> {
  const folder = mkdtempSync(join(tmpdir(), "fanout-bench-local-"));
  const port = await freePort();
  const up = {
    kind: "openai",
    base_url: `${upstream.url}/v1`,
    models: ["*"],
    prices: { "*": { input: 0.15, output: 0.6 } },
  };
  const envFile = join(folder, "env");
  const vars = { ADMIN_KEY, UPSTREAMS: JSON.stringify({ up }), DEFAULT_MODEL: `up/${MODEL}` };
  writeFileSync(
    envFile,
    Object.entries(vars)
      .map(([name, value]) => `${name}='${value}'\n`)
      .join(""),
  );
  const args = ["start", "--", `--port=${port}`, `--persist-to=${join(folder, "data")}`, `--env-file=${envFile}`];
  const child = spawn("npm", args, { cwd: ROOT, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  const ready = Promise.withResolvers<void>();
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (piece: string) => {
      output = (output + piece).slice(-OUTPUT_CHARS_MAX);
      if (output.includes("fanout is ready")) ready.resolve();
    });
  }
  const ended = once(child, "close");
  const processes = (): Process[] => treeOf(child.pid);
  const killAll = (): void => {
    for (const { pid } of processes()) killed(pid);
    rmSync(folder, { recursive: true, force: true });
  };
  process.once("exit", killAll);
  const stop = async (): Promise<void> => {
    child.kill("SIGTERM");
    const timer = setTimeout(killAll, STOP_MS_MAX);
    await ended;
    clearTimeout(timer);
    process.off("exit", killAll);
    rmSync(folder, { recursive: true, force: true });
  };
  const timer = setTimeout(() => ready.reject(new Error(`npm start was not ready:\n${output}`)), START_MS_MAX);
  void ended.then(() => ready.reject(new Error(`npm start ended:\n${output}`)));
  try {
    await ready.promise;
  } catch (error) {
    await stop();
    throw error;
  } finally {
    clearTimeout(timer);
  }
  return {
    url: `http://127.0.0.1:${port}`,
    processes,
    rssBytes: () => processes().reduce((sum, { rssBytes }) => sum + rssBytes, 0),
    cpuMs: () => processes().reduce((sum, { pid }) => sum + cpuMsOf(pid), 0),
    output: () => output,
    [Symbol.asyncDispose]: stop,
  };
}

function killed(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended by itself.
  }
}

/** A process and all that it started, by the process table. */
function treeOf(root = 0): Process[] {
  const { stdout } = spawnSync("ps", ["-A", "-o", "ppid=,pid=,rss=,comm="], { encoding: "utf8" });
  const rows = stdout
    .trim()
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .map(([parent, pid, rssKb, name = ""]) => ({
      parent: Number(parent),
      pid: Number(pid),
      rssBytes: Number(rssKb) * 1_024,
      name,
    }));
  const found = rows.filter(({ pid }) => pid === root);
  // Each process that is found adds its children behind it.
  for (const { pid } of found) found.push(...rows.filter(({ parent }) => parent === pid));
  return found.map(({ pid, name, rssBytes }) => ({ pid, name, rssBytes }));
}
