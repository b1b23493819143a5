import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { GROUP, RunLogWriter } from "../../support/run-log.ts";
import { type Script, type SseServer, startSseServer } from "../../support/sse-server.ts";

const PROGRAM = join(import.meta.dirname, "../../../scripts/watch.ts");

let server: SseServer | null = null;
let child: ChildProcess | null = null;
afterEach(async () => {
  child?.kill("SIGKILL");
  child = null;
  await server?.stop();
  server = null;
});

type Ended = { status: number | null; stdout: string; stderr: string };

async function watch(script: Script, args: readonly string[], onOutput?: (text: string) => void): Promise<Ended> {
  server = await startSseServer(script);
  const env = { PATH: process.env["PATH"], FANOUT_URL: server.url, FANOUT_TOKEN: "token" };
  const started = spawn(process.execPath, ["--", PROGRAM, ...args], { env, stdio: ["ignore", "pipe", "pipe"] });
  child = started;
  const ended: Ended = { status: null, stdout: "", stderr: "" };
  started.stdout.setEncoding("utf8").on("data", (text: string) => {
    ended.stdout += text;
    onOutput?.(ended.stdout);
  });
  started.stderr.setEncoding("utf8").on("data", (text: string) => void (ended.stderr += text));
  return new Promise((resolve) => started.once("close", (status) => resolve({ ...ended, status })));
}

function history(): string[] {
  const log = new RunLogWriter();
  log.opened();
  log.groupStarted(1);
  log.started({ index: 0 });
  log.ended({ index: 0 }, { ms: 1_000 });
  log.completed({ index: 0 }, { ms: 1_000 });
  log.groupCompleted({ completed: 1, failed: 0, cancelled: 0 });
  log.add("run_closed", { status: "closed" });
  return log.lines;
}

const TOLD = [
  `⚡ Parallel Execution Started: 1 sub-agent in group ${GROUP}`,
  `${GROUP} #0 ✓ 1.00s · sim/echo · $0.0004`,
  `✓ Parallel Execution Complete: ${GROUP} (1.23s) · 1 of 1 ok · $0.0012 · 6.4x`,
  "■ run closed",
  'run_1 "first" · closed · $0.0004 of $0.5000 spent · 0 in flight · 1 ok',
  "",
].join("\n");

describe("npm run watch", () => {
  it("tells a run to its end into a pipe, and ends with status 0", async () => {
    expect(await watch({ lines: history() }, ["run_1"])).toEqual({ status: 0, stdout: TOLD, stderr: "" });
  });

  it("asks the gateway which run its token is of", { tags: ["slow"] }, async () => {
    expect(await watch({ lines: history() }, [])).toEqual({ status: 0, stdout: TOLD, stderr: "" });
  });

  it("shows how things stand with --once, though the run goes on", async () => {
    const { status, stdout } = await watch({ lines: history().slice(0, 3) }, ["run_1", "--once"]);
    expect(status).toBe(0);
    expect(stdout).toContain(`${GROUP} [··········] 0/1 · 1 running\n  #0 [█████████·] running `);
    expect(server?.resumedAfter).toEqual([]);
  });

  it("ends with status 1 and says why, where there is no such run", async () => {
    const { status, stdout, stderr } = await watch({ lines: [] }, ["run_0"]);
    expect([status, stdout]).toEqual([1, ""]);
    expect(stderr).toBe(
      `No such run that the token from FANOUT_TOKEN may read at ${server?.url} (run run_0 not found).\n`,
    );
  });

  it("ends with status 130 on Ctrl-C", async () => {
    const connection = () => ({ last: "stay" as const });
    // Once: a second signal, after the program has let go of it, would end the process without its own status.
    let interrupted = false;
    const interrupt = (text: string) => {
      if (interrupted || !text.includes("⚡")) return;
      interrupted = true;
      child?.kill("SIGINT");
    };
    const { status, stdout } = await watch({ lines: history().slice(0, 3), connection }, ["run_1"], interrupt);
    expect(status).toBe(130);
    expect(stdout).toContain("1 in flight");
  });
});
