/** The asyncio stub, run by the real python3, against a gateway that answers as each test specifies, and against the real one. */
import type { ServerResponse } from "node:http";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { reportLeftOut } from "../support/left-out.ts";
import { hasPython, runPython } from "../support/python.ts";
import { sendJson, startScriptedGateway, type ScriptedGateway, type Seen } from "../support/scripted-gateway.ts";
import { startWorld, type World } from "./world.ts";

reportLeftOut("the tests of stubs/python-async", hasPython ? null : "python3");

const runAsync = (program: string, env: Record<string, string>) =>
  runPython(
    `import asyncio\nasync def main():\n${program.trim().replaceAll(/^/gm, "    ")}\nreport(asyncio.run(main()))`,
    env,
    "python-async",
  );

describe.runIf(hasPython)("the asyncio stub", () => {
  let gateway: ScriptedGateway | null = null;
  afterEach(async () => {
    await gateway?.stop();
    gateway = null;
  });

  async function python(program: string, answer: (request: Seen, reply: ServerResponse) => unknown) {
    const started = await startScriptedGateway(answer);
    gateway = started;
    const printed = await runAsync(program, { FANOUT_URL: started.url, FANOUT_TOKEN: "run-token" });
    return { printed, seen: started.seen };
  }

  it("returns whole messages, of one call and of a batch", async () => {
    const message = { role: "assistant", content: null, tool_calls: [{ id: "c", function: { name: "f" } }] };
    const { printed, seen } = await python(
      `
tools = [{"type": "function", "function": {"name": "f"}}]
return [await llm_message("p", "m", tools=tools), await llm_query_batch(["a"], include=["message"])]`,
      ({ path }, reply) => {
        if (path === "/query") return sendJson(reply, 200, { text: "", message });
        const slot = { type: "slot", index: 0, result: "", error: null, message };
        reply.writeHead(200, { "content-type": "application/x-ndjson" });
        return reply.end(`${JSON.stringify(slot)}\n${JSON.stringify({ type: "group_completed" })}\n`);
      },
    );
    expect(printed).toEqual([message, [message]]);
    expect(seen.map(({ body }) => body)).toMatchObject([
      { prompt: "p", model: "m", include: ["message"], params: { tools: [{ function: { name: "f" } }] } },
      { prompts: ["a"], include: ["message"] },
    ]);
  });

  it("sends a query when it is first awaited, and once, however often and however it is awaited", async () => {
    const { printed, seen } = await python(
      `
unused, query = llm_query("unused"), llm_query("ping", "m", max_tokens=5)
return [await query, await query, *await asyncio.gather(query, query), await asyncio.create_task(query),
        await asyncio.wait_for(query, 5), *await asyncio.gather(asyncio.create_task(query), asyncio.create_task(query))]`,
      echo,
    );
    expect(printed).toEqual(Array.from({ length: 8 }, () => "echo ping"));
    expect(seen.map(({ body }) => body)).toEqual([{ prompt: "ping", model: "m", max_tokens: 5 }]);
  });

  it("sends one request for two tasks of one query that run at the same time", async () => {
    const { printed, seen } = await python(
      `
query = llm_query("ping")
return await asyncio.gather(asyncio.create_task(query), asyncio.create_task(query), query)`,
      echo,
    );
    expect(printed).toEqual(["echo ping", "echo ping", "echo ping"]);
    expect(seen).toHaveLength(1);
  });

  it(
    "has 256 gathered calls in flight at once, each with its own answer, and no more",
    { tags: ["slow"] },
    async () => {
      const waiting: (() => void)[] = [];
      let [most, open] = [0, false];
      const { printed } = await python(
        `return await asyncio.gather(*[llm_query(str(i)) for i in range(300)])`,
        async (request, reply) => {
          if (open) return echo(request, reply);
          most = waiting.push(() => echo(request, reply));
          // No call is answered before 256 wait: a client with fewer at once would never end. The pause would reveal one with more.
          if (most !== 256) return;
          await new Promise((resolve) => setTimeout(resolve, 300));
          open = true;
          for (const go of waiting) go();
        },
      );
      expect(printed).toEqual(Array.from({ length: 300 }, (_, index) => `echo ${index}`));
      expect(most).toBe(256);
    },
  );

  it("is driven by asyncio.run itself, and in one event loop after another", async () => {
    gateway = await startScriptedGateway(echo);
    const env = { FANOUT_URL: gateway.url, FANOUT_TOKEN: "t" };
    const program = `
import asyncio
async def wide(): return await asyncio.gather(*[llm_query(str(i)) for i in range(3)])
report([asyncio.run(llm_query("a")), asyncio.run(wide()), asyncio.run(allm_query("b"))])`;
    expect(await runPython(program, env, "python-async")).toEqual(["echo a", ["echo 0", "echo 1", "echo 2"], "echo b"]);
  });

  it("sends queries and strings in one batch, in order, without those that were awaited before", async () => {
    const { printed, seen } = await python(
      `
asked, fresh = llm_query("asked"), llm_query("fresh", "m", max_tokens=5)
await asked
answers = await batch_llm_query(fresh, "text", asked, fresh)
return [answers, await fresh, await batch_llm_query(fresh), await batch_llm_query()]`,
      echo,
    );
    expect(printed).toEqual([
      ["echo fresh", "echo text", "echo asked", "echo fresh"],
      "echo fresh",
      ["echo fresh"],
      [],
    ]);
    expect(seen.map(({ path, body }) => ({ path, body }))).toEqual([
      { path: "/query", body: { prompt: "asked" } },
      {
        path: "/batch",
        body: {
          items: [{ prompt: "fresh", model: "m", max_tokens: 5 }, { prompt: "text" }],
          error_style: "settled",
        },
      },
    ]);
  });

  it("returns a failed query of a batch in its place, and raises its error if it is awaited", async () => {
    const { printed } = await python(
      `
failing = llm_query("fail")
answers = await batch_llm_query("fine", failing)
try:
    await failing
except FanoutError as e:
    return [answers, str(e), e.code, e.status, e.retryable]`,
      echo,
    );
    expect(printed).toEqual([
      ["echo fine", "[error] upstream answered 500"],
      "upstream answered 500",
      "upstream_error",
      500,
      true,
    ]);
  });

  it("raises from a batch of queries that is refused as a whole, and from its queries", async () => {
    const error = { message: "spent", code: "budget_exhausted", retryable: false };
    const { printed, seen } = await python(
      `
query, ends = llm_query("p"), []
for call in (batch_llm_query(query, "q"), query):
    try:
        await call
    except FanoutError as e:
        ends.append([str(e), e.code, e.status])
return ends`,
      (_, reply) => sendJson(reply, 402, { error }),
    );
    const raised = ["spent", "budget_exhausted", 402];
    expect(printed).toEqual([raised, raised]);
    expect(seen).toHaveLength(1);
  });

  it(
    "closes the connection of a cancelled task, and sends its query once more if it is awaited again",
    { tags: ["slow"] },
    async () => {
      let closed = false;
      const { printed, seen } = await python(
        `
query = llm_query("p")
try:
    await asyncio.wait_for(query, 0.5)
except asyncio.TimeoutError:
    return await query`,
        (request, reply) => {
          if (closed) return echo(request, reply);
          return reply.once("close", () => (closed = true));
        },
      );
      expect([printed, seen.length]).toEqual(["echo p", 2]);
    },
  );

  it("ends a task that is cancelled in the moment in which its answer comes", async () => {
    const { printed } = await python(
      `
import fanout_async
came = asyncio.get_running_loop().create_future()
task = asyncio.create_task(fanout_async._within(came, 60))
await asyncio.sleep(0)
came.set_result("an answer")
task.cancel()
await asyncio.wait([task])
return task.cancelled()`,
      echo,
    );
    expect(printed).toBe(true);
  });

  it("yields each slot of a stream while later ones still run", async () => {
    let goOn = () => {};
    const { printed, seen } = await python(
      `
seen = []
async for event in llm_stream(["a", "b"], concurrency=2):
    seen.append(event)
    if len(seen) == 1: await llm_query("go on")
return seen`,
      (request, reply) => {
        if (request.path === "/query") {
          echo(request, reply);
          return goOn();
        }
        reply.write(`{"type":"slot","index":1,"result":"B"}\n\n{"type":"sl`);
        goOn = () => reply.end(`ot","index":0,"result":"A"}\n{"type":"group_completed"}\n`);
      },
    );
    expect(printed).toEqual([
      { type: "slot", index: 1, result: "B" },
      { type: "slot", index: 0, result: "A" },
      { type: "group_completed" },
    ]);
    expect(seen[0]).toMatchObject({ path: "/batch", headers: { accept: "application/x-ndjson" } });
  });

  it("repeats a stream that ends before its last line, and yields each event once", { tags: ["slow"] }, async () => {
    const lines = [
      `{"type":"group_started"}\n`,
      `{"type":"slot","index":1,"result":"B"}\n`,
      `{"type":"slot","index":0,"result":"A"}\n`,
      `{"type":"group_completed"}\n`,
    ];
    const bodies = [lines.slice(0, 2).join(""), lines.slice(0, 3).join(""), lines.join("")];
    const { printed, seen } = await python(
      `return [[e["type"], e.get("result")] async for e in llm_stream(["a", "b"], idempotency_key="s-1")]`,
      (_, reply) => reply.end(bodies.shift()),
    );
    expect(printed).toEqual([
      ["group_started", null],
      ["slot", "B"],
      ["slot", "A"],
      ["group_completed", null],
    ]);
    expect(seen.map(({ headers }) => headers["idempotency-key"])).toEqual(["s-1", "s-1", "s-1"]);
  });

  it("reads an answer however it is framed, after keep-alive white space too", async () => {
    const framings = [{ "content-length": "22" }, {}, { connection: "close", "transfer-encoding": "identity" }];
    const { printed } = await python(`return [await llm_query("p") for _ in range(3)]`, async (_, reply) => {
      reply.writeHead(200, { "content-type": "application/json", ...framings.shift() });
      for (const piece of ["  \n ", `{"text":`]) {
        reply.write(piece);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      reply.end(` "late"} `);
    });
    expect(printed).toEqual(["late", "late", "late"]);
  });

  it("refuses a token or a key that would add a header, and sends nothing", { tags: ["slow"] }, async () => {
    gateway = await startScriptedGateway(echo);
    const env = { FANOUT_URL: gateway.url, FANOUT_TOKEN: "t" };
    const program = `
try:
    await llm_query("p", idempotency_key="k\\r\\nx-evil: 1")
except ValueError as e:
    return str(e)`;
    const said = "a token and an idempotency key are visible ASCII characters";
    expect(await runAsync(program, env)).toBe(said);
    expect(await runAsync(program, { ...env, FANOUT_TOKEN: "a\r\nb" })).toBe(said);
    expect(gateway.seen).toEqual([]);
  });

  it("calls a tool and writes to the log, once each, and reads budget and usage", async () => {
    const { printed, seen } = await python(
      `
async def failure(call):
    try:
        await call
    except FanoutError as e:
        return [e.code, e.status, e.retryable]
return [await tool_call("t", q=1), await FINAL({"a": 1}), (await llm_budget())["usd"], (await llm_usage(reset=True))["llm_calls"],
        await failure(tool_call("none")), await failure(tool_call("gone")), await failure(llm_log("gone"))]`,
      ({ path, body }, reply) => {
        if (JSON.stringify(body).includes("gone")) return reply.destroy();
        if (JSON.stringify(body).includes("none")) return sendJson(reply, 404, { error: "no such tool" });
        return sendJson(reply, 200, { result: path, appended: 1, usd: 2, llm_calls: 3 });
      },
    );
    const lost = ["unreachable", null, true];
    expect(printed).toEqual(["/tool_call", null, 2, 3, ["tool_error", 404, false], lost, lost]);
    expect(seen.map(({ method, path }) => `${method} ${path}`)).toEqual([
      "POST /tool_call",
      "POST /log",
      "GET /budget",
      "GET /usage?reset=1",
      "POST /tool_call",
      "POST /tool_call",
      "POST /log",
    ]);
  });

  it("names the prompt that is none by its index, and sends nothing", async () => {
    const { printed, seen } = await python(
      `
try:
    await llm_query_batch(["a", float("nan")])
except TypeError as e:
    return str(e)`,
      echo,
    );
    expect(printed).toBe("prompts[1] is nan, not a string, a list of messages or a dict");
    expect(seen).toEqual([]);
  });

  it("refuses a string instead of a list of prompts, and sends nothing for an empty list", async () => {
    const { printed, seen } = await python(
      `
try:
    await llm_query_batch("abc")
except TypeError as e:
    return [str(e), await llm_query_batch([]), await llm_batch(iter(())), [e async for e in llm_stream([])]]`,
      echo,
    );
    expect(printed).toEqual(["prompts must be a list of prompts, not one str", [], [], []]);
    expect(seen).toEqual([]);
  });
});

describe.runIf(hasPython)("the asyncio stub at the gateway", () => {
  let world: World;
  let env: Record<string, string> = {};
  beforeAll(async () => void (world = await startWorld()));
  beforeEach(async () => {
    world.upstream.forget();
    const run = await world.openRun({ default_model: "up-1", budget: { usd: 1 }, max_parallel: 64 });
    env = { FANOUT_URL: world.gateway.url, FANOUT_TOKEN: run.token };
  });
  afterAll(() => world.stop());

  it("answers 100 gathered calls", { tags: ["slow"] }, async () => {
    const program = `return await asyncio.gather(*[llm_query(str(i), "sim/echo?ms=20") for i in range(100)])`;
    expect(await runAsync(program, env)).toEqual(Array.from({ length: 100 }, (_, index) => String(index)));
  });

  it("sends a batch of queries, and returns a failure in its place", async () => {
    const program = `return await batch_llm_query(llm_query("one"), "{{status/400}}", llm_query("three", "up/up-3"))`;
    expect(await runAsync(program, env)).toEqual(["one", expect.stringMatching(/^\[error\] ./), "three"]);
    expect(world.upstream.counters.requests).toBe(3);
  });

  it(
    "closes the child run of a cancelled task, and leaves other tasks in their own runs",
    { tags: ["slow"] },
    async () => {
      const program = `
async def limit(): return (await llm_budget())["calls"]["limit"]
async def part():
    async with with_run(calls=3):
        await llm_query("{{delay/1000}}")
task = asyncio.create_task(part())
await asyncio.sleep(0.5)
async with with_run(calls=2):
    limits = [await limit(), *await asyncio.gather(limit(), limit())]
limits.append(await limit())
task.cancel()
await asyncio.wait([task])
calls = (await llm_budget())["calls"]
return [limits, task.cancelled(), calls["reserved"], calls["spent"]]`;
      expect(await runAsync(program, env)).toEqual([[2, 2, 2, null], true, 0, 1]);
    },
  );

  it(
    "closes the connection of a cancelled task, which ends a batch with detach=False",
    { tags: ["slow"] },
    async () => {
      const asking = runAsync(
        `
task = asyncio.create_task(llm_query_batch(["{{fault/hang}}"], detach=False))
await asyncio.sleep(1)
task.cancel()
try:
    await task
except asyncio.CancelledError:
    await asyncio.sleep(2)
    return "cancelled"`,
        env,
      );
      await expect.poll(() => world.upstream.counters).toMatchObject({ inFlight: 1, abandoned: 0 });
      await expect.poll(() => world.upstream.counters.abandoned).toBe(1);
      expect(await asking).toBe("cancelled");
    },
  );
});

/** Answers a prompt with "echo " before it, and the prompts of a batch as a stream; the prompt "fail" fails. */
function echo({ path, body }: Seen, reply: ServerResponse): void {
  const promptOf = (item: unknown) =>
    typeof item === "object" && item !== null && "prompt" in item ? String(item.prompt) : String(item);
  if (path === "/query") return sendJson(reply, 200, { text: `echo ${promptOf(body)}` });
  const items = typeof body === "object" && body !== null ? Object.values(body).find(Array.isArray) : [];
  const error = { code: "upstream_error", message: "upstream answered 500", status: 500, retryable: true };
  for (const [index, prompt] of [...(items ?? []).map(promptOf).entries()].toReversed()) {
    const failed = prompt === "fail";
    const result = failed ? { status: "rejected", reason: error } : { status: "fulfilled", value: `echo ${prompt}` };
    reply.write(`${JSON.stringify({ type: "slot", index, result, error: failed ? error : null })}\n`);
  }
  reply.end(`{"type":"group_completed"}\n`);
}
