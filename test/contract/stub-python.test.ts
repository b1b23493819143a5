/** The Python stub, run by the real python3, against a gateway that answers as each test specifies. */
import type { ServerResponse } from "node:http";
import { afterEach, describe, expect, it } from "vitest";
import { reportLeftOut } from "../support/left-out.ts";
import { hasPython, runPython } from "../support/python.ts";
import type { ScriptedGateway, Seen } from "../support/scripted-gateway.ts";
import { sendJson, startScriptedGateway } from "../support/scripted-gateway.ts";

reportLeftOut("the tests of stubs/python/fanout.py", hasPython ? null : "python3");

it("has a python3 to test the stub with, at least in CI", () => {
  expect(hasPython || process.env["CI"] !== "true").toBe(true);
});

const WAYS_TO_FAIL = `
def failure(call):
    try:
        call()
    except FanoutError as e:
        return [str(e), e.code, e.status, e.retryable, e.retry_after_s]
`;

describe.runIf(hasPython)("the Python stub", () => {
  let gateway: ScriptedGateway | null = null;
  afterEach(async () => {
    await gateway?.stop();
    gateway = null;
  });

  async function python(program: string, answer: (request: Seen, reply: ServerResponse) => unknown) {
    const started = await startScriptedGateway(answer);
    gateway = started;
    const printed = await runPython(program, { FANOUT_URL: started.url, FANOUT_TOKEN: "run-token" });
    return { printed, seen: started.seen };
  }

  it("sends one call with the token and returns its text", async () => {
    const { printed, seen } = await python(`report(llm_query("ping"))`, echo);
    expect(printed).toBe("echo ping");
    expect(seen).toMatchObject([{ method: "POST", path: "/query", body: { prompt: "ping" } }]);
    expect(seen[0]?.headers).toMatchObject({ authorization: "Bearer run-token", "content-type": "application/json" });
  });

  it("sends every keyword argument as the field of that name", async () => {
    const { seen } = await python(
      `llm_query("p", "m", max_tokens=5, params={"seed": 1}); llm_query_batch(["p"], model="m", concurrency=3); report(0)`,
      echo,
    );
    expect(seen.map(({ body }) => body)).toEqual([
      { prompt: "p", model: "m", max_tokens: 5, params: { seed: 1 } },
      { prompts: ["p"], model: "m", concurrency: 3 },
    ]);
  });

  it("returns whole messages, of one call and of a batch, and sends tools where the gateway takes them", async () => {
    const message = { role: "assistant", content: null, tool_calls: [{ id: "c", function: { name: "f" } }] };
    const { printed, seen } = await python(
      `tools = [{"type": "function", "function": {"name": "f"}}]
asked = [{"role": "user", "content": "hi"}]
report([llm_message(asked, "m", tools=tools, params={"seed": 1}), llm_message("p"),
        llm_query_batch(["a", "b"], tools=tools), llm_query_batch(["a", "b"], include=["message", "logprobs"]),
        llm_message("p", tools=["search"]), llm_query_batch(["a", "b"], tools=["search"])])`,
      ({ path }, reply) =>
        path === "/query"
          ? sendJson(reply, 200, { text: "", message })
          : sendJson(reply, 200, { results: ["", "[error] no"], items: [{ message }, {}] }),
    );
    const texts = ["", "[error] no"];
    expect(printed).toEqual([message, message, [message, "[error] no"], [message, "[error] no"], message, texts]);
    const tools = [{ type: "function", function: { name: "f" } }];
    const messages = [{ role: "user", content: "hi" }];
    expect(seen.map(({ body }) => body)).toEqual([
      { messages, model: "m", include: ["message"], params: { seed: 1, tools } },
      { prompt: "p", include: ["message"] },
      { prompts: ["a", "b"], include: ["message"], params: { tools } },
      { prompts: ["a", "b"], include: ["message", "logprobs"] },
      // Tools of the run go by their names, and the gateway calls them.
      { prompt: "p", include: ["message"], tools: ["search"] },
      { prompts: ["a", "b"], tools: ["search"] },
    ]);
  });

  it("sends a batch in one request and returns the answers in the order of the prompts", async () => {
    const { printed, seen } = await python(`report(llm_query_batch([str(i) for i in range(1000)]))`, echo);
    expect(printed).toEqual(Array.from({ length: 1000 }, (_, index) => `echo ${index}`));
    expect(seen).toHaveLength(1);
  });

  it("returns a failed slot in its place as the gateway rendered it", async () => {
    const { printed } = await python(`report(llm_query_batch(["a", "fail", "c"]))`, echo);
    expect(printed).toEqual(["echo a", "[error] upstream answered 500", "echo c"]);
  });

  it("sends no request for an empty list", async () => {
    const { printed, seen } = await python(
      `report([llm_query_batch([]), list(llm_stream([])), llm_query_batch(iter(()))])`,
      echo,
    );
    expect(printed).toEqual([[], [], []]);
    expect(seen).toEqual([]);
  });

  it("refuses a string instead of a list of prompts, and sends nothing", async () => {
    const { printed, seen } = await python(
      `
try:
    llm_query_batch("abc")
except TypeError as e:
    report(str(e))`,
      echo,
    );
    expect(printed).toBe("prompts must be a list of prompts, not one str");
    expect(seen).toEqual([]);
  });

  it("names the prompt that is none by its index, and sends nothing", async () => {
    const { printed, seen } = await python(
      `
try:
    llm_query_batch(["a", "b", float("nan")])
except TypeError as e:
    report(str(e))`,
      echo,
    );
    expect(printed).toBe("prompts[2] is nan, not a string, a list of messages or a dict");
    expect(seen).toEqual([]);
  });

  it("sends chat messages and items if not all prompts are strings", async () => {
    const { seen } = await python(
      `llm_query([{"role": "user", "content": "x"}]); llm_query_batch(["p", {"id": "i", "prompt": "q"}]); report(0)`,
      echo,
    );
    expect(seen.map(({ body }) => body)).toEqual([
      { messages: [{ role: "user", content: "x" }] },
      { items: [{ prompt: "p" }, { id: "i", prompt: "q" }] },
    ]);
  });

  it("keeps every character, unpaired surrogates and NUL included", async () => {
    const { printed } = await python(`report(llm_query("naïve 漢字 🦉 \\ud800 \\x00 \\u2028"))`, echo);
    expect(printed).toBe("echo naïve 漢字 🦉 \ud800 \0 \u2028");
  });

  it("offers its calls under their other names", async () => {
    const { printed } = await python(
      `report([llm_query_batched(["a"], "m"), llm_batch(["b"]), rlm_query("c", "m"), rlm_query_batched(["d"], "m")])`,
      echo,
    );
    expect(printed).toEqual([["echo a"], ["echo b"], "echo c", ["echo d"]]);
  });

  it("reads an answer that begins with keep-alive white space", async () => {
    const { printed } = await python(`report(llm_query_batch(["a"]))`, async (_, reply) => {
      reply.writeHead(200, { "content-type": "application/json" });
      for (const piece of [" ", "\n", "  \n"]) {
        reply.write(piece);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      reply.end(`{"results":["late"]}`);
    });
    expect(printed).toEqual(["late"]);
  });

  it("raises the gateway's error with its code, status and retry hint, after one request", async () => {
    const error = { message: "queue full", type: "server_error", code: "overloaded", param: null, retryable: true };
    const { printed, seen } = await python(
      `${WAYS_TO_FAIL}\nreport([failure(lambda: llm_query("p")), failure(lambda: llm_query_batch(["p"]))])`,
      (_, reply) => sendJson(reply, 503, { error }, { "retry-after": "7" }),
    );
    const raised = ["queue full", "overloaded", 503, true, 7];
    expect(printed).toEqual([raised, raised]);
    expect(seen).toHaveLength(2);
  });

  it("raises an error that arrives after status 200 was sent", async () => {
    const error = { message: "worker died", code: "internal", retryable: true };
    const { printed } = await python(`${WAYS_TO_FAIL}\nreport(failure(lambda: llm_query_batch(["p"])))`, (_, reply) =>
      sendJson(reply, 200, { error }),
    );
    expect(printed).toEqual(["worker died", "internal", null, true, null]);
  });

  it("raises on an answer that is not JSON or has the wrong length, and does not repeat the request", async () => {
    const bodies = [`{"results":["a"`, `<html>`, `{"results":[]}`];
    const { printed, seen } = await python(
      `${WAYS_TO_FAIL}\nreport([failure(lambda: llm_query_batch(["p"]))[1] for _ in range(3)])`,
      (_, reply) => reply.end(bodies.shift()),
    );
    expect(printed).toEqual(["bad_answer", "bad_answer", "bad_answer"]);
    expect(seen).toHaveLength(3);
  });

  it("repeats a request whose refusal is cut in the middle", async () => {
    const error = { message: "spent", code: "budget_exhausted", retryable: false };
    let cut = false;
    const { printed, seen } = await python(
      `${WAYS_TO_FAIL}\nreport(failure(lambda: llm_query("p"))[1:3])`,
      (_, reply) => {
        if (cut) return sendJson(reply, 402, { error });
        cut = true;
        return reply.writeHead(402, { "content-length": "99" }).write(`{"err`, () => reply.destroy());
      },
    );
    expect(printed).toEqual(["budget_exhausted", 402]);
    expect(seen).toHaveLength(2);
  });

  it("sends the idempotency key that it is given, so that a restarted program gets the recorded answers", async () => {
    const { seen } = await python(
      `llm_query("p", idempotency_key="q-1"); llm_query_batch(["p"], idempotency_key="b-1"); report(0)`,
      echo,
    );
    expect(seen.map(({ headers, body }) => [headers["idempotency-key"], body])).toEqual([
      ["q-1", { prompt: "p" }],
      ["b-1", { prompts: ["p"] }],
    ]);
  });

  it(
    "names the cause if nothing listens, the token is missing or the address is invalid",
    { tags: ["slow"] },
    async () => {
      const call = `${WAYS_TO_FAIL}\nreport(failure(lambda: llm_query("p"))[:2])`;
      const closed = await startScriptedGateway(echo);
      await closed.stop();
      expect(await runPython(call, { FANOUT_URL: closed.url, FANOUT_TOKEN: "t" })).toEqual([
        expect.stringContaining(`no answer from the gateway at ${closed.url}`),
        "unreachable",
      ]);
      expect(await runPython(call, {})).toEqual([expect.stringContaining("FANOUT_TOKEN is not set"), "no_token"]);
      expect(await runPython(call, { FANOUT_URL: "ftp://h", FANOUT_TOKEN: "t" })).toEqual([
        "FANOUT_URL must be an http:// or https:// address, not 'ftp://h'",
        "bad_url",
      ]);
    },
  );

  it("reads GATEWAY_URL and GATEWAY_TOKEN if its own variables are unset", async () => {
    gateway = await startScriptedGateway(echo);
    const env = { GATEWAY_URL: `${gateway.url}/`, GATEWAY_TOKEN: "other\n" };
    expect(await runPython(`report(llm_query("p"))`, env)).toBe("echo p");
    expect(gateway.seen).toMatchObject([{ path: "/query", headers: { authorization: "Bearer other" } }]);
  });

  it("follows no redirect, which would carry the token to another host", async () => {
    const { printed, seen } = await python(`${WAYS_TO_FAIL}\nreport(failure(lambda: llm_query("p"))[2])`, (_, reply) =>
      reply.writeHead(302, { location: "/elsewhere" }).end(),
    );
    expect(printed).toBe(302);
    expect(seen).toHaveLength(1);
  });

  it("reaches a gateway on the loopback interface past a configured proxy", async () => {
    gateway = await startScriptedGateway(echo);
    const env = { FANOUT_URL: gateway.url, FANOUT_TOKEN: "t", http_proxy: "http://127.0.0.1:9" };
    expect(await runPython(`report(llm_query("p"))`, env)).toBe("echo p");
  });

  it("yields each slot of a stream while later ones still run", async () => {
    const { printed, seen } = await python(
      `
seen = []
for event in llm_stream(["a", "b"], concurrency=2):
    seen.append(event)
    if len(seen) == 1: llm_query("go on")
report(seen)`,
      streamThatWaits(),
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
    const bodies = [lines.slice(0, 2).join(""), lines.join("").slice(0, -9), lines.join("")];
    const { printed, seen } = await python(
      `report([[e["type"], e.get("result")] for e in llm_stream(["a", "b"])])`,
      (_, reply) => reply.end(bodies.shift()),
    );
    expect(printed).toEqual([
      ["group_started", null],
      ["slot", "B"],
      ["slot", "A"],
      ["group_completed", null],
    ]);
    expect(new Set(seen.map(({ headers }) => headers["idempotency-key"])).size).toBe(1);
    expect(seen).toHaveLength(3);
  });

  it("raises the failure that a stream reports", async () => {
    const error = { message: "worker died", code: "internal", retryable: true };
    const { printed } = await python(
      `${WAYS_TO_FAIL}\nreport(failure(lambda: list(llm_stream(["a"])))[:4])`,
      (_, reply) => reply.end(`${JSON.stringify({ type: "error", error })}\n`),
    );
    expect(printed).toEqual(["worker died", "internal", null, true]);
  });

  it("reads the document of its run", async () => {
    const { printed, seen } = await python(`report(llm_run()["budget"])`, (_, reply) =>
      sendJson(reply, 200, { id: "r", budget: { usd: { limit: 1 } } }),
    );
    expect(printed).toEqual({ usd: { limit: 1 } });
    expect(seen).toMatchObject([{ method: "GET", path: "/run" }]);
  });

  it("reads the remaining budget and the usage", async () => {
    const { printed, seen } = await python(`report([llm_budget(), llm_usage(), llm_usage(reset=True)])`, (_, reply) =>
      sendJson(reply, 200, { usd: { remaining: 1 }, llm_calls: 2 }),
    );
    expect(printed).toEqual([1, 2, 3].map(() => ({ usd: { remaining: 1 }, llm_calls: 2 })));
    expect(seen.map(({ method, path }) => `${method} ${path}`)).toEqual([
      "GET /budget",
      "GET /usage",
      "GET /usage?reset=1",
    ]);
  });

  it("logs a result of any JSON type, also from a variable of the caller", async () => {
    const { seen } = await python(
      `
outer = [1, "ü"]
def inside():
    name = "local"
    FINAL("text"), FINAL_VAR("name"), FINAL_VAR('"outer"'), SUBMIT(answer=42, event_type="x")
report(inside())`,
      (_, reply) => sendJson(reply, 201, { appended: 1 }),
    );
    expect(seen.map(({ path, body }) => ({ path, body }))).toEqual(
      [
        ["text", "text"],
        ["local", "local"],
        [`[1, "\\u00fc"]`, [1, "ü"]],
        [`{"answer": 42, "event_type": "x"}`, { answer: 42, event_type: "x" }],
      ].map(([output, data]) => ({ path: "/log", body: { event_type: "final_result", output, data } })),
    );
  });

  it("calls a tool, and raises the tool's own error message", async () => {
    const { printed, seen } = await python(
      `${WAYS_TO_FAIL}
report([tool_call("search", q="x", n=1), failure(lambda: tool_call("none")), failure(lambda: tool_call("slow"))])`,
      ({ body }, reply) => {
        if (JSON.stringify(body).includes("none")) return sendJson(reply, 404, { error: "no such tool" });
        if (JSON.stringify(body).includes("slow")) return sendJson(reply, 408, { error: "too slow" });
        return sendJson(reply, 200, { result: ["hit"] });
      },
    );
    expect(printed).toEqual([
      ["hit"],
      ["no such tool", "tool_error", 404, false, null],
      ["too slow", "tool_error", 408, true, null],
    ]);
    expect(seen[0]?.body).toEqual({ tool_name: "search", input: { q: "x", n: 1 } });
    expect(seen.map(({ headers }) => headers["idempotency-key"])).toEqual([undefined, undefined, undefined]);
  });

  it.each(["tool_call('t')", "llm_log('noted')"])(
    "does not repeat %s, which may have reached the gateway",
    async (call) => {
      const { printed, seen } = await python(`${WAYS_TO_FAIL}\nreport(failure(lambda: ${call})[1])`, (_, reply) =>
        reply.destroy(),
      );
      expect(printed).toBe("unreachable");
      expect(seen).toHaveLength(1);
    },
  );
});

/** Answers a prompt with "echo " before it, except "fail" in a batch. */
function echo({ body }: Seen, reply: ServerResponse): void {
  if (hasPrompts(body)) {
    const results = body.prompts.map((p) => (p === "fail" ? "[error] upstream answered 500" : `echo ${p}`));
    sendJson(reply, 200, { results });
  } else if (hasItems(body)) {
    sendJson(reply, 200, { results: body.items.map(() => "item") });
  } else {
    const prompt = typeof body === "object" && body !== null && "prompt" in body ? String(body.prompt) : "";
    sendJson(reply, 200, { text: `echo ${prompt}` });
  }
}

function hasPrompts(body: unknown): body is { prompts: string[] } {
  return typeof body === "object" && body !== null && "prompts" in body && Array.isArray(body.prompts);
}

function hasItems(body: unknown): body is { items: unknown[] } {
  return typeof body === "object" && body !== null && "items" in body && Array.isArray(body.items);
}

/** Ends slot 1 at once, and slot 0 after the client has made another request. */
function streamThatWaits(): (request: Seen, reply: ServerResponse) => void {
  let goOn = () => {};
  return (request, reply) => {
    if (request.path === "/query") {
      echo(request, reply);
      return goOn();
    }
    reply.writeHead(200, { "content-type": "application/x-ndjson" });
    reply.write(`{"type":"slot","index":1,"result":"B"}\n\n`);
    goOn = () => reply.end(`{"type":"slot","index":0,"result":"A"}\n{"type":"group_completed"}\n`);
  };
}
