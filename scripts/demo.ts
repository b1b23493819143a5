/**
 * `npm run demo`: a gateway and a run of its own, the example program in it, and nothing left behind.
 * Ends with status 0 only if everything succeeded.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type DemoSetting, demoSetting, envFileText } from "./demo-provider.ts";
import { launch } from "./launch.ts";
import { openRun } from "./open-run.ts";
import { tryPort } from "./port.ts";
import { ROOT, type Wrangler } from "./wrangler.ts";

const HOST = "127.0.0.1";
const BUDGET_USD = Number(process.env["FANOUT_BUDGET_USD"] || "0.25");
const WIDTH = 32;

let program: ChildProcess | null = null;
let gateway: Wrangler | null = null;
let interrupted = false;
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.on(signal, () => {
    interrupted = true;
    program?.kill(signal);
    void gateway?.stop();
  });
}

process.exitCode = await main();

async function main(): Promise<number> {
  const setting = demoSetting(process.env);
  if (typeof setting === "string") return fail(setting);
  if (!(BUDGET_USD > 0)) return fail("FANOUT_BUDGET_USD must be a number above 0.");
  const folder = mkdtempSync(join(tmpdir(), "fanout-demo-"));
  try {
    return await demonstrate(setting, folder);
  } catch (error) {
    return interrupted ? 130 : fail(error instanceof Error ? error.message : String(error));
  } finally {
    await gateway?.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function demonstrate(setting: DemoSetting, folder: string): Promise<number> {
  const started = performance.now();
  const free = await tryPort(0, HOST);
  if ("refused" in free) return fail(`Cannot listen on ${HOST}: ${free.refused}.`);
  const url = `http://${HOST}:${free.port}`;
  const adminKey = randomBytes(24).toString("base64url");
  const envFile = join(folder, "env");
  writeFileSync(envFile, envFileText({ ADMIN_KEY: adminKey, ...setting.vars }), { mode: 0o600 });
  const { wrangler, readiness } = await launch({
    // An env file takes the place of .dev.vars, so that the demo neither reads nor needs the person's own.
    args: ["--ip", HOST, "--port", String(free.port), "--persist-to", join(folder, "state"), "--env-file", envFile],
    env: { WRANGLER_REGISTRY_PATH: join(folder, "registry"), WRANGLER_LOG_PATH: join(folder, "logs") },
    url,
    adminKey,
    onStart: (started) => void (gateway = started),
  });
  if (interrupted) return 130;
  if (!readiness.ready) return fail(readiness.message);
  console.log(`Gateway ready at ${url} after ${((performance.now() - started) / 1000).toFixed(1)} s`);

  const budget = { usd: BUDGET_USD };
  const run = await openRun({ url, adminKey, run: { name: "demo", budget, max_parallel: WIDTH } });
  console.log(`Run ${run.id}: budget $${BUDGET_USD}, ${WIDTH} calls at once\n`);
  const model = setting.model === null ? {} : { FANOUT_MODEL: setting.model };
  const status = await runExample({ FANOUT_URL: url, FANOUT_TOKEN: run.token, ...model });
  const log = wrangler.output().trim();
  // The program has said what went wrong; the gateway's log helps only if the gateway has, too.
  if (status !== 0 && !interrupted && /error/i.test(log)) console.error(`\nThe gateway's log:\n${log}`);
  return interrupted ? 130 : status;
}

/** Runs the example by python3, or by Node where there is none; resolves with its exit status. */
function runExample(env: Record<string, string>): Promise<number> {
  const python = spawnSync("python3", ["-c", "import sys; sys.exit(sys.version_info < (3, 8))"]).status === 0;
  const [command, file] = python ? ["python3", "map_reduce.py"] : [process.execPath, "map_reduce.mjs"];
  const example = spawn(command, [join(ROOT, "examples", file)], {
    stdio: "inherit",
    // Python guesses an encoding from the locale, and may write its compiled files beside the stub.
    env: { ...process.env, PYTHONIOENCODING: "utf-8", PYTHONDONTWRITEBYTECODE: "1", ...env },
  });
  program = example;
  return new Promise((resolve) => {
    example.once("error", () => resolve(1));
    example.once("exit", (code) => resolve(code ?? 1));
  });
}

function fail(message: string): number {
  console.error(message);
  return 1;
}
