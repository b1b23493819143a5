/**
 * `npm run first-minute`: follows README.md from a fresh clone to the first answer and times each step. Prints a Markdown table,
 * removes the clone, and has the exit status 0 only if the answer is the one in README.md.
 *
 * `--cold` gives npm an empty cache, as on a new machine.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { text } from "node:stream/consumers";
import { firstMinuteOf, wrongWith } from "./first-minute-readme.ts";
import { tryPort } from "./port.ts";
import { ROOT } from "./root.ts";

const HOST = "127.0.0.1";
const DEFAULT_URL = `http://${HOST}:8787`;
/** Time limit of each step, enough for an install over a slow network. */
const STEP_MS = 10 * 60_000;
/** Time that a gateway has to stop, ms: it gives its own runtime five seconds. */
const STOP_MS = 10_000;

type Step = { name: string; seconds: number };

const running = new Set<ChildProcess>();
let interrupted = false;
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.on(signal, () => {
    interrupted = true;
    for (const child of running) signalGroup(child, "SIGTERM");
  });
}

process.exitCode = await main();

async function main(): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), "fanout-first-minute-"));
  try {
    const cold = process.argv.includes("--cold");
    const { steps, node } = await firstMinute(folder, cold);
    console.log(table(steps));
    console.log(`\nNode ${node}, ${availableParallelism()} cores, npm's cache ${cold ? "empty" : "as it was"}.`);
    return 0;
  } catch (error) {
    console.error(interrupted ? "Stopped." : error instanceof Error ? error.message : error);
    return 1;
  } finally {
    await Promise.all([...running].map(stop));
    rmSync(folder, { recursive: true, force: true });
  }
}

async function firstMinute(folder: string, cold: boolean): Promise<{ steps: Step[]; node: string }> {
  const free = await tryPort(0, HOST);
  if ("refused" in free) throw new Error(`Cannot listen on ${HOST}: ${free.refused}.`);
  const clone = join(folder, "fanout");
  const env = strangersEnv(folder, free.port, cold);
  const steps: Step[] = [];
  const timed = async (name: string, work: () => Promise<unknown>) => {
    if (interrupted) throw new Error("stopped");
    const startedMs = performance.now();
    await work();
    steps.push({ name, seconds: (performance.now() - startedMs) / 1_000 });
  };

  await timed("`git clone`, from this disk", () => run(["git", "clone", "--quiet", ROOT, clone], folder, env));
  const readme = firstMinuteOf(readFileSync(join(clone, "README.md"), "utf8"));
  if (typeof readme === "string") throw new Error(readme);
  await timed("`npm ci`", () => run(["npm", "ci"], clone, env));
  await timed("`npm start`, until it is ready", () =>
    untilSaid(start(["npm", "start"], clone, env), "fanout is ready"),
  );
  const paste = readme.paste.replaceAll(DEFAULT_URL, `http://${HOST}:${free.port}`);
  let printed = "";
  await timed("the paste, until the answer", async () => (printed = await run(["sh", "-c", paste], clone, env)));
  const wrong = wrongWith(printed, readme.expected);
  if (wrong !== null) throw new Error(wrong);

  await Promise.all([...running].map(stop));
  const after = await tryPort(free.port, HOST);
  if ("refused" in after) throw new Error(`A process still listens on port ${free.port}: ${after.refused}.`);
  return { steps, node: (await run(["node", "--version"], folder, env)).trim() };
}

/** The environment of a new user: no variables of fanout, and no programs of this checkout on the path. */
function strangersEnv(folder: string, port: number, cold: boolean): NodeJS.ProcessEnv {
  const foreign = /^(FANOUT_|OPENAI_|ANTHROPIC_|GATEWAY_|ADMIN_KEY$|NODE_OPTIONS$|npm_package_|npm_lifecycle_)/;
  const kept = Object.entries(process.env).filter(([name]) => !foreign.test(name));
  const path = (process.env["PATH"] ?? "").split(delimiter).filter((entry) => !entry.includes("node_modules"));
  return {
    ...Object.fromEntries(kept),
    PATH: path.join(delimiter),
    PORT: String(port),
    // Wrangler's own files, which would not be removed.
    WRANGLER_REGISTRY_PATH: join(folder, "registry"),
    WRANGLER_LOG_PATH: join(folder, "logs"),
    ...(cold ? { npm_config_cache: join(folder, "npm-cache") } : {}),
  };
}

/** Starts a command in its own process group, so that all of its processes can be ended. */
function start([command, ...args]: readonly [string, ...string[]], cwd: string, env: NodeJS.ProcessEnv) {
  const child = spawn(command, args, { cwd, env, stdio: ["ignore", "pipe", "pipe"], detached: true });
  running.add(child);
  child.once("error", () => running.delete(child));
  child.once("close", () => running.delete(child));
  return child;
}

/** Runs a command to its end; returns its output, or throws an error with its output. */
async function run(command: readonly [string, ...string[]], cwd: string, env: NodeJS.ProcessEnv): Promise<string> {
  const child = start(command, cwd, env);
  const late = setTimeout(() => signalGroup(child, "SIGKILL"), STEP_MS);
  const status = new Promise<number | null>((resolve, reject) => child.once("error", reject).once("close", resolve));
  const [code, printed, complaint] = await Promise.all([status, text(child.stdout), text(child.stderr)]);
  clearTimeout(late);
  if (code === 0) return printed;
  throw new Error(`${command.join(" ").slice(0, 200)} ended with ${code}:\n${printed}${complaint}`);
}

async function untilSaid(child: ReturnType<typeof start>, words: string): Promise<void> {
  let output = "";
  await new Promise<void>((resolve, reject) => {
    const fail = (why: string) => reject(new Error(`npm start ${why}:\n${output}`));
    const late = setTimeout(() => fail("was not ready in time"), STEP_MS);
    const read = (piece: string) => {
      output += piece;
      if (!output.includes(words)) return;
      clearTimeout(late);
      resolve();
    };
    child.stdout.setEncoding("utf8").on("data", read);
    child.stderr.setEncoding("utf8").on("data", read);
    child.once("close", (code) => {
      clearTimeout(late);
      fail(`ended with ${code}`);
    });
  });
}

async function stop(child: ChildProcess): Promise<void> {
  const closed = new Promise((resolve) => child.once("close", resolve));
  signalGroup(child, "SIGTERM");
  const late = setTimeout(() => signalGroup(child, "SIGKILL"), STOP_MS);
  if (running.has(child)) await closed;
  clearTimeout(late);
}

function signalGroup({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // The group has already ended.
  }
}

function table(steps: readonly Step[]): string {
  const total = steps.reduce((sum, { seconds }) => sum + seconds, 0);
  const rows = [...steps, { name: "**all**", seconds: total }];
  const lines = rows.map(({ name, seconds }) => `| ${name} | ${seconds.toFixed(1)} |`);
  return ["| step | seconds |", "|---|---:|", ...lines].join("\n");
}
