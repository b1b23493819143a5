/** Ctrl-C in programs that use a stub: real processes, a real SIGINT, and what the upstream and the ledger then show. */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { reportLeftOut } from "../support/left-out.ts";
import { hasPython } from "../support/python.ts";
import { startUpstream, type TestUpstream } from "../support/upstream.ts";
import { documentOf, startWorld, type RunAccess, type World } from "./world.ts";

reportLeftOut("Ctrl-C in Python's stubs", hasPython ? null : "python3");

const STUBS = fileURLToPath(new URL("../../stubs/", import.meta.url));

let world: World;
let upstream: TestUpstream;
let folder = "";
beforeAll(async () => {
  // Its answers are requested as streams.
  upstream = await startUpstream();
  const prices = { "*": { input: 1, output: 2 } };
  const provider = { kind: "openai", base_url: upstream.baseUrl, models: ["streamed-*"], aggregate: "stream", prices };
  world = await startWorld(undefined, {}, { streamed: provider });
  folder = mkdtempSync(join(tmpdir(), "fanout-interrupt-"));
});
beforeEach(() => upstream.forget());
afterAll(async () => {
  await world.stop();
  await upstream.stop();
  rmSync(folder, { recursive: true, force: true });
});

type Program = { name: string; file: string; command: string; batch: string; keyed: string; gather: string };

const PROGRAMS: Program[] = [
  {
    name: "Python",
    file: "program.py",
    command: "python3",
    batch: `from fanout import *\nllm_query_batch(PROMPTS, concurrency=4)`,
    keyed: `from fanout import *\nllm_query_batch(PROMPTS, concurrency=4, idempotency_key="own")`,
    gather: `from fanout import *\nfor event in llm_stream(PROMPTS, concurrency=4): print(event["type"])`,
  },
  {
    name: "Python with asyncio",
    file: "program_async.py",
    command: "python3",
    batch: `import asyncio\nfrom fanout_async import *\nasyncio.run(llm_query_batch(PROMPTS, concurrency=4))`,
    keyed: `import asyncio\nfrom fanout_async import *\nasyncio.run(llm_query_batch(PROMPTS, concurrency=4, idempotency_key="own"))`,
    gather: `import asyncio\nfrom fanout_async import *\nasync def main(): await asyncio.gather(*[llm_query(p) for p in PROMPTS])\nasyncio.run(main())`,
  },
  {
    name: "JavaScript",
    file: "program.mjs",
    command: process.execPath,
    batch: `const { llmQueryBatch } = await import(STUB);\nawait llmQueryBatch(PROMPTS, { concurrency: 4 });`,
    keyed: `const { llmQueryBatch } = await import(STUB);\nawait llmQueryBatch(PROMPTS, { concurrency: 4, idempotencyKey: "own" });`,
    gather: `const { llmQuery } = await import(STUB);\nawait Promise.all(PROMPTS.map((prompt) => llmQuery(prompt)));`,
  },
];

type Ended = { signal: string | null; code: number | null; stderr: string };

/** Starts a program; `interrupt` sends it SIGINT, `ended` is how it ended. */
function start(program: Program, source: string, prompts: readonly string[], run: RunAccess) {
  const path = join(folder, program.file);
  const isPython = program.command === "python3";
  const constants = isPython
    ? `PROMPTS = ${JSON.stringify(prompts)}\n`
    : `const PROMPTS = ${JSON.stringify(prompts)};\nconst STUB = ${JSON.stringify(`file://${STUBS}javascript/fanout.mjs`)};\n`;
  writeFileSync(path, constants + source);
  const env = {
    ...process.env,
    FANOUT_URL: world.gateway.url,
    FANOUT_TOKEN: run.token,
    PYTHONPATH: [`${STUBS}python`, `${STUBS}python-async`].join(":"),
    PYTHONDONTWRITEBYTECODE: "1",
  };
  const child = spawn(program.command, [path], { env, stdio: ["ignore", "ignore", "pipe"] });
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  const ended = new Promise<Ended>((resolve) => {
    child.once("close", (code, signal) => resolve({ code, signal, stderr }));
  });
  return { interrupt: () => void child.kill("SIGINT"), ended };
}

const latched = (count: number, latch: string) => Array.from({ length: count }, (_, at) => `{{latch/${latch}}} ${at}`);
const openOwn = (more: object = {}) => world.openRun({ default_model: "streamed-1", budget: { usd: 1 }, ...more });

async function inFlight(count: number): Promise<void> {
  await expect.poll(() => upstream.counters.inFlight, { interval: 10 }).toBe(count);
}

/** Waits until the run has cancelled all that is queued. */
async function queueIsEmpty(run: RunAccess, running: number): Promise<void> {
  await expect.poll(async () => (await documentOf(run)).stats.pending_queries, { interval: 20 }).toBe(running);
}

function expectInterrupted({ code, signal }: Ended): void {
  // Python reports its KeyboardInterrupt as the signal, or as 130.
  expect(signal === "SIGINT" || code === 130).toBe(true);
}

describe.runIf(hasPython).each(PROGRAMS)("Ctrl-C in a program in $name", (program) => {
  const slug = program.name.replaceAll(" ", "-");

  it(
    "starts no queued call, lets those in flight end, and says what they cost and how to continue",
    { tags: ["slow"] },
    async () => {
      const run = await openOwn();
      const latch = `batch-${slug}`;
      const prompts = [...latched(12, latch)];
      const { interrupt, ended } = start(program, program.batch, prompts, run);
      await inFlight(4);
      interrupt();
      await queueIsEmpty(run, 4);
      upstream.open(latch);
      const end = await ended;
      expectInterrupted(end);
      const { budget } = await documentOf(run);
      expect(upstream.counters).toMatchObject({ requests: 4, abandoned: 0 });
      expect(budget.usd.reserved).toBe(0);
      // The same calls without an interruption.
      const whole = await openOwn();
      await whole.send("/batch", { json: { prompts: prompts.slice(0, 4) } });
      const cost = (await documentOf(whole)).budget.usd.spent;
      console.log(
        `${program.name}: charged ${(budget.usd.spent / cost).toFixed(2)} × the real cost, 0 queued calls sent`,
      );
      expect(budget.usd.spent).toBeLessThanOrEqual(1.1 * cost);
      const line = /fanout: interrupted\. 4 of 12 calls answered, 8 cancelled, <?\$0(\.\d{4})? spent\. (.*)/.exec(
        end.stderr,
      );
      expect(line?.[2]).toMatch(/^(llm_retry|llmRetry)\(['"]pg-[^)]+\) makes the rest and returns all answers\.$/);
    },
  );

  it("lets a request with its own key go on, and says so", { tags: ["slow"] }, async () => {
    const run = await openOwn();
    const latch = `keyed-${slug}`;
    const { interrupt, ended } = start(program, program.keyed, latched(6, latch), run);
    await inFlight(4);
    interrupt();
    const end = await ended;
    expectInterrupted(end);
    expect(end.stderr).toMatch(
      /fanout: interrupted\. The gateway goes on[^\n]*["']own["'][^\n]*(llm_cancel|llmCancel)/,
    );
    upstream.open(latch);
    await expect.poll(async () => (await documentOf(run)).budget.calls.spent).toBe(6);
  });

  it("does so for every request that is under way", { tags: ["slow"] }, async () => {
    const run = await openOwn({ max_parallel: 4 });
    const latch = `gather-${slug}`;
    const { interrupt, ended } = start(program, program.gather, latched(40, latch), run);
    await inFlight(4);
    await queueIsEmpty(run, 40);
    interrupt();
    await queueIsEmpty(run, 4);
    upstream.open(latch);
    const end = await ended;
    expectInterrupted(end);
    expect(end.stderr).toMatch(/fanout: interrupted\. 4 of 40 calls answered, 36 cancelled, <?\$0(\.\d{4})? spent\./);
    expect(upstream.counters).toMatchObject({ requests: 4, abandoned: 0 });
  });

  it("a second time waits for nothing", { tags: ["slow"] }, async () => {
    const run = await openOwn();
    const { interrupt, ended } = start(program, program.batch, latched(8, `twice-${slug}`), run);
    await inFlight(4);
    interrupt();
    await queueIsEmpty(run, 4);
    interrupt();
    expectInterrupted(await ended);
    upstream.open(`twice-${slug}`);
  });
});
