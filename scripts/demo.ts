/**
 * `npm run demo`: starts a gateway, opens a run, runs the example program in it, and removes all of it.
 * The exit status is 0 only if everything succeeded.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type DemoSetting, demoSetting } from "./demo-provider.ts";
import { startLocalGateway, type LocalGateway } from "./local/gateway.ts";
import { openRun } from "./open-run.ts";
import { refusal } from "./readiness.ts";
import { withoutTokens } from "./redact-tokens.ts";
import { ROOT } from "./root.ts";

const HOST = "127.0.0.1";
const BUDGET_USD = Number(process.env["FANOUT_BUDGET_USD"] || "0.25");
const WIDTH = 32;

let program: ChildProcess | null = null;
let gateway: LocalGateway | null = null;
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
  const adminKey = randomBytes(24).toString("base64url");
  // No env file: the demo must not use the user's own settings.
  const vars = { ...setting.vars, ADMIN_KEY: adminKey };
  const printed: string[] = [];
  const log = (line: string): void => void printed.push(withoutTokens(line));
  gateway = await startLocalGateway({ vars }, { host: HOST, port: 0, dataDir: join(folder, "state"), log });
  if (interrupted) return 130;
  const { url } = gateway;
  const problem = await refusal(url, adminKey);
  if (problem !== null) return fail(`The gateway is not usable: ${problem}`);
  console.log(`Gateway ready at ${url} after ${secondsSince(started)}`);

  const budget = { usd: BUDGET_USD };
  const run = await openRun({ url, adminKey, run: { name: "demo", budget, max_parallel: WIDTH } });
  console.log(`Run ${run.id}: budget $${BUDGET_USD}, ${WIDTH} calls at once\n`);
  const model = setting.model === null ? {} : { FANOUT_MODEL: setting.model };
  const status = await runExample({ FANOUT_URL: url, FANOUT_TOKEN: run.token, ...model });
  if (status !== 0 && !interrupted && printed.length > 0) {
    console.error(`\nThe gateway's log:\n${printed.join("\n")}`);
  }
  if (status === 0 && !interrupted) console.log(`The demo took ${secondsSince(started)}`);
  return interrupted ? 130 : status;
}

function secondsSince(startedMs: number): string {
  return `${((performance.now() - startedMs) / 1_000).toFixed(1)} s`;
}

/** Runs the example with python3, or with Node if python3 is missing; resolves with its exit status. */
function runExample(env: Record<string, string>): Promise<number> {
  const python = spawnSync("python3", ["-c", "import sys; sys.exit(sys.version_info < (3, 8))"]).status === 0;
  const [command, file] = python ? ["python3", "map_reduce.py"] : [process.execPath, "map_reduce.mjs"];
  const example = spawn(command, [join(ROOT, "examples", file)], {
    stdio: "inherit",
    // Python chooses the encoding by the locale, and may write compiled files next to the stub.
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
