/**
 * The gateway with R2 and, if requested, Workflows, which plain workerd has not: Miniflare serves it, in a process of its own, so
 * that a kill is one. The same surface as `gateway.ts`.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { bundled, openRun, send, type Gateway, type GatewayOptions } from "./gateway.ts";
import type { GatewayPlan } from "./r2-gateway-child.ts";

const CHILD = fileURLToPath(new URL("r2-gateway-child.ts", import.meta.url));
const WRANGLER_TOML = fileURLToPath(new URL("../../wrangler.toml", import.meta.url));
const OUTPUT_CHARS_MAX = 32_768;
/** Time the process gets to end by itself, ms. */
const STOP_MS = 3_000;

/** `hasWorkflows`: whether the Workflow that wrangler.toml has as a comment is bound; default false, as there. */
export type R2GatewayOptions = GatewayOptions & { hasWorkflows?: boolean };

/** Starts a gateway and waits until it listens. Of the options, `workerdArgs` means nothing here. */
export async function startR2Gateway(options: R2GatewayOptions = {}): Promise<Gateway> {
  const script = await bundled(options.entryPoint);
  const wranglerToml = await readFile(WRANGLER_TOML, "utf8");
  const scratchDir = await mkdtemp(join(tmpdir(), "fanout-r2-"));
  const dataDir = options.dataDir ?? join(scratchDir, "data");
  await mkdir(dataDir, { recursive: true });
  const vars = {
    ADMIN_KEY: randomUUID(),
    DEFAULT_MODEL: "sim/echo",
    UPSTREAMS: { sim: { kind: "simulated" } },
    ...options.vars,
  };
  const workflow = options.hasWorkflows === true ? workflowIn(wranglerToml) : null;
  const plan = { ...planOf(wranglerToml), workflow, scratchDir, dataDir, vars, port: options.port ?? 0 };
  const planFile = join(scratchDir, "plan.json");
  await writeFile(join(scratchDir, "gateway.mjs"), script);
  await writeFile(planFile, JSON.stringify(plan));
  const removeScratch = () => rm(scratchDir, { recursive: true, force: true });
  const served = await serve(planFile).catch(async (error: unknown) => {
    await removeScratch();
    throw error;
  });
  const adminKey = String(vars.ADMIN_KEY);
  return {
    url: served.url,
    adminKey,
    pid: served.pid,
    dataDir,
    inspectorUrl: null,
    output: served.output,
    stop: () => served.stop().then(removeScratch),
    kill: () => served.kill().then(removeScratch),
    openRun: (body = {}) => openRun(served.url, adminKey, body),
    fetch: (path, request) => send(served.url + path, request),
  };
}

/** What wrangler.toml says: it stays the one place that names compatibility, objects and the bucket. */
function planOf(
  wranglerToml: string,
): Pick<GatewayPlan, "compatibilityDate" | "compatibilityFlags" | "objects" | "bucketBinding" | "bucketName"> {
  const found = (pattern: RegExp): string => foundIn(wranglerToml, pattern);
  const objects = [...wranglerToml.matchAll(/\{ name = "(\w+)", class_name = "(\w+)" \}/g)];
  const flags = found(/^compatibility_flags = \[(.*)\]$/m).matchAll(/"([^"]+)"/g);
  return {
    compatibilityDate: found(/^compatibility_date = "([^"]+)"/m),
    compatibilityFlags: [...flags].map(([, flag = ""]) => flag),
    objects: objects.map(([, binding = "", className = ""]) => ({ binding, className })),
    bucketBinding: found(/^\[\[r2_buckets\]\]\nbinding = "(\w+)"/m),
    bucketName: found(/^bucket_name = "([^"]+)"/m),
  };
}

/** The Workflow, which wrangler.toml has as a comment. */
function workflowIn(wranglerToml: string): GatewayPlan["workflow"] {
  const named = (key: string): string =>
    foundIn(wranglerToml, new RegExp(`^# \\[\\[workflows\\]\\]\\n(?:# .*\\n)*?# ${key} = "([^"]+)"`, "m"));
  return { name: named("name"), binding: named("binding"), className: named("class_name") };
}

function foundIn(wranglerToml: string, pattern: RegExp): string {
  const value = pattern.exec(wranglerToml)?.[1];
  if (value === undefined) throw new Error(`wrangler.toml has no ${pattern}`);
  return value;
}

type Served = Pick<Gateway, "url" | "pid" | "output" | "stop" | "kill">;

async function serve(planFile: string): Promise<Served> {
  const child = spawn(process.execPath, [CHILD, planFile], {
    stdio: ["pipe", "pipe", "pipe"],
    // A group of its own: a signal to it reaches workerd too, which Miniflare has started.
    detached: true,
    // What Miniflare leaves behind when it is killed goes with the rest.
    env: { ...process.env, TMPDIR: dirname(planFile) },
  });
  const exited = once(child, "exit");
  const { pid } = child;
  if (pid === undefined) throw new Error("the gateway's process could not be started");
  const killGroup = () => {
    try {
      process.kill(-pid, "SIGKILL");
    } catch {
      // All of them have ended.
    }
  };
  process.once("exit", killGroup);
  const output = tailOf(child);
  const url = await Promise.race([firstLineOf(child), exited.then(() => null)]);
  if (url === null) throw new Error(`the gateway ended before it listened:\n${output()}`);
  const isOver = () => child.exitCode !== null || child.signalCode !== null;
  const kill = async () => {
    killGroup();
    if (!isOver()) await exited;
    process.off("exit", killGroup);
  };
  const stop = async () => {
    const timer = setTimeout(killGroup, STOP_MS);
    child.stdin?.end();
    if (!isOver()) await exited;
    clearTimeout(timer);
    await kill();
  };
  return { url, pid, output, stop, kill };
}

async function firstLineOf(child: ChildProcess): Promise<string | null> {
  let text = "";
  const { stdout } = child;
  if (stdout === null) return null;
  stdout.setEncoding("utf8");
  return await new Promise((resolve) => {
    stdout.on("data", (piece: string) => {
      text = (text + piece).slice(0, OUTPUT_CHARS_MAX);
      const end = text.indexOf("\n");
      if (end !== -1) resolve(text.slice(0, end));
    });
  });
}

function tailOf(child: ChildProcess): () => string {
  let text = "";
  const take = (piece: string) => {
    text = (text + piece).slice(-OUTPUT_CHARS_MAX);
  };
  // Miniflare sends on to stdout what the Worker writes to its console.
  child.stdout?.setEncoding("utf8").on("data", take);
  child.stderr?.setEncoding("utf8").on("data", take);
  return () => text;
}
