/**
 * A program of concurrent calls that is killed again and again, or its gateway, and started once more. What it has seen of an
 * answer is never paid again; what was in flight may be.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { startGateway, type Gateway } from "../../test/support/gateway.ts";
import { startUpstream } from "../../test/support/upstream.ts";
import { Random } from "../adversary/random.ts";
import { atMost, exact, plain, type Part } from "../parts/row.ts";

const PROGRAM = join(import.meta.dirname, "program.mjs");
/** Longest life of a program before it is killed, or its gateway, ms. */
const LIFE_MS_MAX = 600;
const WIDTH = 64;

export async function measureKills(kills: number, calls: number): Promise<Part> {
  const upstream = await startUpstream(({ arrival }) => ({ delayMs: 20 + (arrival % 7) * 30 }));
  const { sends } = upstream.counters;
  const dataDir = await mkdtemp(join(tmpdir(), "fanout-bench-replay-"));
  const prices = { "*": { input: 1, output: 1 } };
  const up = { kind: "openai", base_url: upstream.baseUrl, models: ["*"], prices };
  const vars = { ADMIN_KEY: randomUUID(), UPSTREAMS: { up }, DEFAULT_MODEL: "up/m" };
  const start = (port: number): Promise<Gateway> => startGateway({ vars, dataDir, port });
  let gateway = await start(0);
  /** Its programs find it at the same address after a restart. */
  const port = Number(new URL(gateway.url).port);
  /** How often a prompt had been sent when a program saw its answer for the first time. */
  const seen = new Map<string, number>();
  const random = new Random(16);
  const killed = { programs: 0, gateways: 0 };
  let inFlight = 0;
  const live = (token: string): Life =>
    new Life(gateway.url, token, calls, (prompt) => seen.set(prompt, seen.get(prompt) ?? sends.get(prompt) ?? 0));
  try {
    const { token } = await gateway.openRun({ replay: "run", max_parallel: WIDTH, budget: { usd: 1_000 } });
    let life = live(token);
    for (let kill = 0; kill < kills; kill++) {
      await new Promise((resolve) => setTimeout(resolve, random.integer(50, LIFE_MS_MAX)));
      inFlight += upstream.counters.inFlight;
      if (random.integer(0, 1) === 0 || life.isOver) {
        await life.kill();
        killed.programs += 1;
        life = live(token);
      } else {
        await gateway.kill();
        killed.gateways += 1;
        gateway = await start(port);
      }
    }
    await life.kill();
    // A life that nothing interrupts, whatever is left; then one that has nothing left to pay.
    await live(token).ended();
    const before = upstream.counters.requests;
    const startedMs = performance.now();
    await live(token).ended();
    const ms = ((performance.now() - startedMs) * 1_000) / calls;
    const again = [...seen].filter(([prompt, before]) => (sends.get(prompt) ?? 0) > before);
    const last = upstream.counters.requests - before;
    const extra = upstream.counters.requests - calls;
    return {
      rows: [
        plain("programs and gateways killed", `${killed.programs} and ${killed.gateways}`),
        exact(
          `of ${calls} calls, paid again although the program had the answer`,
          `${again.length}`,
          "0",
          again.length === 0,
        ),
        exact("calls paid by the last life", `${last}`, "0", last === 0),
        exact("calls paid again in all", `${extra}`, `<= ${inFlight} in flight at the kills`, extra <= inFlight),
        atMost("1,000 calls of the last life, with its start", ms, 1_000, " ms"),
      ],
      faults: again.slice(0, 10).map(([prompt, before]) => `${prompt}: ${before} → ${sends.get(prompt)}`),
    };
  } finally {
    await gateway.stop();
    await upstream.stop();
    await rm(dataDir, { recursive: true, force: true });
  }
}

/** One life of the program. */
class Life {
  readonly #process: ChildProcess;
  readonly #exit: Promise<unknown>;
  #isDone = false;

  constructor(url: string, token: string, calls: number, saw: (prompt: string) => void) {
    this.#process = spawn(process.execPath, [PROGRAM, url, token, String(calls)], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    this.#exit = once(this.#process, "exit");
    if (this.#process.stdout === null) throw new Error("the program has no output");
    createInterface(this.#process.stdout).on("line", (line) => {
      if (line === "done") this.#isDone = true;
      else saw(line);
    });
  }

  get isOver(): boolean {
    return this.#process.exitCode !== null;
  }

  async kill(): Promise<void> {
    this.#process.kill("SIGKILL");
    await this.#exit;
  }

  /** Waits for its end. Throws if it failed. */
  async ended(): Promise<void> {
    await this.#exit;
    if (!this.#isDone) throw new Error("the program has failed");
  }
}
