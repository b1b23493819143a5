/** What only the Pyodide stub has: calls that block in a worker, and settings from a page. */
import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { sendJson, startScriptedGateway, type ScriptedGateway, type Seen } from "../support/scripted-gateway.ts";
import { reportLeftOut } from "../support/left-out.ts";
import { buildDriver, missingOf, PYODIDE, ROOT, RUNTIMES } from "./language.ts";

const missing = missingOf({ needs: [PYODIDE] });
reportLeftOut("the stub for Pyodide beyond the script for all stubs", missing === null ? null : "Pyodide");

/** Where the driver writes a snapshot of the started Pyodide, of which each program starts in a third of the processor time. */
let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "fanout-pyodide-"));
  const driver = join(ROOT, "test/stubs/drivers/pyodide.mjs");
  if (missing === null) buildDriver({ build: () => [[process.execPath, driver, folder]] }, folder);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

type Environment = "worker" | "page" | "elsewhere";

let gateway: ScriptedGateway | null = null;
afterEach(async () => {
  await gateway?.stop();
  gateway = null;
});

/** What the program's `main` returns, and its requests to a gateway that answers as the test specifies. */
async function pyodide(
  main: string,
  answer: (request: Seen, reply: ServerResponse) => unknown,
  { place = "worker", env = {} }: { place?: Environment; env?: Record<string, string> } = {},
): Promise<{ returned: unknown; seen: Seen[] }> {
  const started = await startScriptedGateway(answer);
  gateway = started;
  const host = join(ROOT, "test/support/pyodide-host.mjs");
  const files = [join(folder, "pyodide.snapshot"), join(ROOT, "stubs/pyodide/fanout_pyodide.py")];
  const args = [host, ...files, ...(place === "elsewhere" ? [] : [place])];
  const { PATH = "" } = process.env;
  const variables = { PATH, FANOUT_RUNTIMES: RUNTIMES, FANOUT_URL: started.url, FANOUT_TOKEN: "run-token", ...env };
  const child = spawn(process.execPath, args, { env: variables, stdio: "pipe" });
  child.stdin.end(`async def main():\n${main.trim().replaceAll(/^/gm, "    ")}`);
  const ended = new Promise<number | null>((resolve) => void child.once("close", resolve));
  const [printed, standardError, code] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  if (code !== 0) throw new Error(`the program ended with ${code}: ${standardError.slice(-2_000)}`);
  return { returned: JSON.parse(printed), seen: started.seen };
}

const failureOf = (call: string) => `
try:
    ${call}
except FanoutError as e:
    return [e.code, e.status, e.retryable]`;

describe("the stub for Pyodide", () => {
  beforeEach((context) => {
    if (missing !== null) context.skip("this machine has no pyodide in FANOUT_RUNTIMES");
  });

  it("blocks in a worker, in every function but the stream", async () => {
    const { returned, seen } = await pyodide(
      `
FINAL_sync("done"), llm_log_sync("noted", output="x")
return [llm_query_sync("naïve 漢字 🦉", "m"), llm_query_batch_sync(["a", "fail"]), llm_query_batch_sync([]),
        llm_budget_sync()["usd"], llm_usage_sync(reset=True)["llm_calls"], tool_call_sync("t", q=1)]`,
      echo,
    );
    expect(returned).toEqual(["echo naïve 漢字 🦉", ["echo a", "[error] 500"], [], 1, 2, "hit"]);
    expect(seen.map(({ method, path }) => `${method} ${path}`)).toEqual([
      "POST /log",
      "POST /log",
      "POST /query",
      "POST /batch",
      "GET /budget",
      "GET /usage?reset=1",
      "POST /tool_call",
    ]);
    expect(seen[0]?.body).toEqual({ event_type: "final_result", output: "done", data: "done" });
    expect(seen[2]).toMatchObject({ headers: { authorization: "Bearer run-token" }, body: { model: "m" } });
  });

  it("opens and closes a child run around calls that block", async () => {
    const { returned, seen } = await pyodide(
      `
with with_run_sync(calls=2) as run:
    inside = llm_query_sync("inside")
return [run["id"], inside, llm_query_sync("outside")]`,
      (request, reply) => {
        if (request.path !== "/runs") return echo(request, reply);
        return sendJson(reply, 201, { id: "run_1", token: "child-token" });
      },
    );
    expect(returned).toEqual(["run_1", "echo inside", "echo outside"]);
    expect(seen.map(({ path, headers }) => [path, headers.authorization])).toEqual([
      ["/runs", "Bearer run-token"],
      ["/query", "Bearer child-token"],
      ["/runs/run_1/close", "Bearer run-token"],
      ["/query", "Bearer run-token"],
    ]);
  });

  it("repeats a blocking request under the same key if the connection is lost", async () => {
    let lost = 0;
    const { returned, seen } = await pyodide(`return llm_query_sync("p")`, (request, reply) =>
      ++lost <= 2 ? reply.destroy() : echo(request, reply),
    );
    expect(returned).toBe("echo p");
    expect(seen).toHaveLength(3);
    expect(new Set(seen.map(({ headers }) => headers["idempotency-key"])).size).toBe(1);
  });

  it("ends a blocking call after the timeout, and reports a refusal", async () => {
    const slow = await pyodide(failureOf(`llm_query_sync("p")`), () => undefined, { env: { FANOUT_TIMEOUT_S: "1" } });
    expect([slow.returned, slow.seen.length]).toEqual([["timeout", null, true], 1]);
    await gateway?.stop();
    const error = { message: "spent", code: "budget_exhausted", retryable: false };
    const poor = await pyodide(failureOf(`llm_query_batch_sync(["p"])`), (_, reply) => sendJson(reply, 402, { error }));
    expect([poor.returned, poor.seen.length]).toEqual([["budget_exhausted", 402, false], 1]);
  });

  it("rejects an answer from a redirect", async () => {
    const { returned } = await pyodide(failureOf(`llm_query_sync("p")`), (request, reply) =>
      request.path === "/query"
        ? reply.writeHead(307, { location: "/elsewhere" }).end()
        : sendJson(reply, 200, { text: "no" }),
    );
    expect(returned).toEqual(["bad_answer", 302, false]);
  });

  it.each<Environment>(["page", "elsewhere"])("reports that it cannot block (%s), and sends nothing", async (place) => {
    const { returned, seen } = await pyodide(failureOf(`llm_query_sync("p")`), echo, { place });
    expect([returned, seen]).toEqual([["no_worker", null, false], []]);
  });

  it("awaits calls after a blocking call, and many at once", async () => {
    const { returned } = await pyodide(
      `
first = llm_query_sync("sync")
return [first, *await asyncio.gather(*[llm_query(str(i)) for i in range(20)])]`,
      echo,
    );
    expect(returned).toEqual(["echo sync", ...Array.from({ length: 20 }, (_, index) => `echo ${index}`)]);
  });

  it("uses the address and the token that a page configures", async () => {
    const { returned, seen } = await pyodide(
      `
import os
url = os.environ.pop("FANOUT_URL") + "/"
configure(url, "page-token")
return await llm_query("p")`,
      echo,
      { place: "page" },
    );
    expect(returned).toBe("echo p");
    expect(seen[0]?.headers.authorization).toBe("Bearer page-token");
  });

  it("closes the connection of a task that is cancelled", async () => {
    let closed = false;
    const { returned } = await pyodide(
      `
try:
    await asyncio.wait_for(llm_query("hang"), 0.5)
except TimeoutError:
    return await llm_query("closed?")`,
      (request, reply) => {
        if (JSON.stringify(request.body).includes("hang")) return reply.once("close", () => (closed = true));
        return setTimeout(() => sendJson(reply, 200, { text: String(closed) }), 100);
      },
    );
    expect(returned).toBe("true");
  });
});

/** Answers every route; the prompt "fail" of a batch fails. */
function echo({ path, body }: Seen, reply: ServerResponse): void {
  const sent = JSON.stringify(body);
  if (path !== "/batch") {
    const prompt = /"prompt":"([^"]*)"/.exec(sent)?.[1] ?? "";
    return sendJson(reply, 200, {
      text: `echo ${prompt}`,
      usd: 1,
      llm_calls: 2,
      result: "hit",
      appended: 1,
      status: "",
    });
  }
  for (const [index, [, prompt = ""]] of [...sent.matchAll(/"(a|fail)"/g)].entries()) {
    const result = prompt === "fail" ? "[error] 500" : `echo ${prompt}`;
    reply.write(`${JSON.stringify({ type: "slot", index, result, error: null })}\n`);
  }
  reply.end(`{"type":"group_completed"}\n`);
}
