/** The Python stub and the example programs against the gateway itself. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Gateway } from "../support/gateway.ts";
import { startGateway } from "../support/gateway.ts";
import { reportLeftOut } from "../support/left-out.ts";
import { hasPython, runPython } from "../support/python.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

reportLeftOut("the Python stub and example at the gateway", hasPython ? null : "python3");

let gateway: Gateway;
let env: Record<string, string> = {};
beforeAll(async () => {
  gateway = await startGateway();
  const run = await gateway.openRun({ budget: { usd: 1 }, max_parallel: 32 });
  env = { FANOUT_URL: gateway.url, FANOUT_TOKEN: run.token };
});
afterAll(() => gateway.stop());

it("serves the stub that is in the repository", async () => {
  const reply = await fetch(`${gateway.url}/stubs/python`);
  expect(await reply.text()).toBe(readFileSync(`${ROOT}/stubs/python/fanout.py`, "utf8"));
});

describe.runIf(hasPython)("the Python stub at the gateway", () => {
  it("returns every character of an answer", async () => {
    expect(await runPython(`report(llm_query("naïve 漢字 🦉", "sim/echo"))`, env)).toBe("naïve 漢字 🦉");
  });

  it("returns 500 answers in order, with each failure in its own slot", { tags: ["slow"] }, async () => {
    const results = await runPython(
      `
items = [{"prompt": str(i), "model": "sim/fail?status=400" if i % 10 == 3 else "sim/echo?ms=5"} for i in range(500)]
report(llm_query_batch(items, concurrency=32))`,
      env,
    );
    const expected = Array.from({ length: 500 }, (_, index) =>
      index % 10 === 3 ? expect.stringMatching(/^\[error\] ./) : String(index),
    );
    expect(results).toEqual(expected);
  });

  it("raises a refusal with its code and status", { tags: ["slow"] }, async () => {
    const program = (call: string) => `
try:
    ${call}
except FanoutError as e:
    report([e.code, e.status, e.retryable, str(e)])`;
    expect(await runPython(program(`llm_query("p", "nowhere/m")`), env)).toEqual([
      "model_not_found",
      404,
      false,
      expect.stringContaining("nowhere/m"),
    ]);
    expect(await runPython(program(`llm_query_batch(["p"], colour="red")`), env)).toEqual([
      "invalid_request",
      400,
      false,
      expect.stringContaining("colour"),
    ]);
    expect(await runPython(program(`llm_query("p")`), { ...env, FANOUT_TOKEN: "forged" })).toEqual([
      "invalid_api_key",
      401,
      false,
      expect.any(String),
    ]);
  });

  it("opens a child run for one thread: a new thread is outside of it, unless it takes the context along", async () => {
    const program = `
import contextvars
from concurrent.futures import ThreadPoolExecutor
def limit(): return llm_budget()["calls"]["limit"]
with with_run(calls=3) as run, ThreadPoolExecutor(1) as thread:
    inside = contextvars.copy_context()
    limits = [limit(), thread.submit(limit).result(), thread.submit(inside.run, limit).result()]
report([limits, limit(), run["depth"], run["budget"]["calls"]["limit"]])`;
    expect(await runPython(program, env)).toEqual([[3, null, 3], null, 1, 3]);
  });

  it("yields a fast slot before a slow one, and the group last", async () => {
    const events = await runPython(
      `
items = [{"prompt": "slow", "model": "sim/echo?ms=400"}, {"prompt": "fast", "model": "sim/echo"}]
report([[e["type"], e.get("index"), e.get("result")] for e in llm_stream(items) if e["type"] in ("slot", "group_completed")])`,
      env,
    );
    expect(events).toEqual([
      ["slot", 1, "fast"],
      ["slot", 0, "slow"],
      ["group_completed", null, null],
    ]);
  });
});

describe("the example programs", () => {
  const programs = [...(hasPython ? [["python3", "map_reduce.py"]] : []), ["node", "map_reduce.mjs"]];

  it.each(programs)("%s %s counts the colour words of the whole book", { tags: ["slow"] }, (command, file) => {
    const ended = spawnSync(command ?? "", [`${ROOT}/examples/${file}`], {
      env: { PATH: process.env["PATH"], PYTHONIOENCODING: "utf-8", PYTHONDONTWRITEBYTECODE: "1", ...env },
      encoding: "utf8",
    });
    expect(ended.stderr).toBe("");
    expect(ended.status).toBe(0);
    expect(ended.stdout).toMatch(/⚡ Parallel Execution Started: 97 sub-calls in group pg-\d{13}-[0-9a-z]{1,6}\n/);
    expect(ended.stdout).toMatch(/✓ Parallel Execution Complete \(\d+\.\d\ds\)\n/);
    expect(ended.stdout).toMatch(/Spent \$0\.\d{6} of \$1\.00 in all, for 98 calls\n$/);
    const counts = [...ended.stdout.matchAll(/^ {2}([a-z]+) +(\d+)$/gm)].map(([, word, n]) => `${word} ${n}`);
    expect(counts).toEqual(wordsOfTheBook());
  });
});

/** The same counts, computed here from the words of the book. */
function wordsOfTheBook(): string[] {
  const asked = ["red", "orange", "yellow", "green", "blue", "indigo", "violet", "purple", "white", "black"];
  const words = readFileSync(`${ROOT}/examples/data/opticks.txt`, "utf8")
    .toLowerCase()
    .split(/[^\p{L}\p{M}\p{N}]+/u);
  const counts = new Map(asked.map((word) => [word, 0]));
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  return asked
    .map((word) => ({ word, n: counts.get(word) ?? 0 }))
    .toSorted((a, b) => b.n - a.n)
    .map(({ word, n }) => `${word} ${n}`);
}
