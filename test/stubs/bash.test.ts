/** The Bash stub beyond the script for all stubs: its command lines, its exit status, and the options of its callers. */
import { execFile } from "node:child_process";
import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, it, onTestFinished } from "vitest";
import { startWorld, type RunAccess, type World } from "../contract/world.ts";
import { startFaultyProxy, type FaultyProxy } from "../support/faulty-proxy.ts";
import { reportLeftOut } from "../support/left-out.ts";
import { missingOf, ROOT } from "./language.ts";

const STUB = join(ROOT, "stubs/bash/fanout.sh");

const missing = missingOf({ needs: ["bash", "curl", "jq"].map((command) => [command, "--version"]) });
reportLeftOut("the Bash stub beyond the script for all stubs", missing);

let world: World;
let run: RunAccess;
let proxy: FaultyProxy;
let folder = "";

beforeAll(async () => {
  world = await startWorld();
  folder = await mkdtemp(join(tmpdir(), "fanout-bash-"));
});
afterAll(async () => {
  await world.stop();
  await rm(folder, { recursive: true, force: true });
});
beforeEach(async (context) => {
  if (missing !== null) context.skip(`this machine has no ${missing}`);
  world.upstream.forget();
  run = await world.openRun({ default_model: "up-1", budget: { usd: 1 } });
  proxy = await startFaultyProxy(world.gateway.url);
  onTestFinished(() => proxy.stop());
});

type Ended = { status: number; stdout: string; stderr: string };
type Given = { input?: string; env?: Record<string, string> };

function start(command: string, args: readonly string[], { input = "", env = {} }: Given = {}): Promise<Ended> {
  const own = {
    PATH: process.env["PATH"],
    HOME: folder,
    FANOUT_URL: proxy.url,
    FANOUT_TOKEN: run.token,
    STUB,
    LANG: "C.UTF-8",
    ...env,
  };
  return new Promise((resolve) => {
    const child = execFile(command, args, { env: own, cwd: folder, maxBuffer: 2 ** 26 }, (error, stdout, stderr) => {
      resolve({ status: error === null ? 0 : Number(error.code), stdout, stderr });
    });
    // A program that ends without reading its input closes the pipe, possibly before the input is written.
    child.stdin?.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "EPIPE") throw error;
    });
    child.stdin?.end(input);
  });
}

/** Runs a script that sources the stub, in the strictest mode. */
const script = (text: string, given?: Given): Promise<Ended> =>
  start("bash", ["-c", `set -euo pipefail\nsource "$STUB"\n${text}`], given);
/** Runs the stub as a program. */
const program = (args: readonly string[], given?: Given): Promise<Ended> => start("bash", [STUB, ...args], given);

const bodies = (): unknown[] => proxy.requests.map(({ body }) => JSON.parse(body) as unknown);
const promptsSent = () => (bodies()[0] as { prompts?: string[] } | undefined)?.prompts;

it.each<[string, string[], string, string[]]>([
  ["a JSON array", ["--json"], '["a", "b c"]', ["a", "b c"]],
  ["a JSON array as an argument", ["--json", '["a", "b"]'], "", ["a", "b"]],
  ["prompts in an object", ["--json"], '{"prompts": ["a"]}', ["a"]],
  ["a call's arguments", ["--json"], '{"args": ["a", "b"]}', ["a", "b"]],
  ["a call's keywords", ["--json"], '{"kwargs": {"prompts": ["a", "b"]}}', ["a", "b"]],
  ["one JSON text", ["--json"], '"a"', ["a"]],
  ["one prompt per line", ["--lines"], "one  *\r\n\n$HOME\\n\n", ["one  *", "", "$HOME\\n"]],
  ["lines without a final newline", ["--lines"], "one\ntwo", ["one", "two"]],
  ["arguments", ["one", "-x", "[two"], "", ["one", "-x", "[two"]],
  ["one argument that is JSON", ['["a", "b"]'], "", ["a", "b"]],
  ["one argument that only begins like JSON", ["[a] and 1e3"], "", ["[a] and 1e3"]],
  ["a number, as text", ["1e3"], "", ["1e3"]],
  ["JSON on standard input without an option", [], '["a", "b"]', ["a", "b"]],
  ["text on standard input without an option", [], "a text\nof two lines\n", ["a text\nof two lines"]],
])("llm_batch accepts %s, as that of verifiers does", async (_, args, input, prompts) => {
  const { status, stdout } = await program(["llm_batch", ...args], { input });
  expect([status, promptsSent()]).toEqual([0, prompts]);
  expect(JSON.parse(stdout)).toEqual(prompts);
  expect(stdout.endsWith("]\n")).toBe(true);
});

it.each([
  [["--json"], "[]"],
  [["--lines"], ""],
  [[], ""],
])("llm_batch %j with empty input sends no request", async (args, input) => {
  const { status, stdout } = await program(["llm_batch", ...args], { input });
  expect([status, stdout, proxy.requests]).toEqual([0, "[]\n", []]);
});

it("llm_batch accepts a concurrency and a model, items with fields of their own, and request fields", async () => {
  const input = JSON.stringify(["a", { prompt: "b", max_tokens: 5 }, [{ role: "user", content: "c" }]]);
  const env = { FANOUT_OPTIONS: '{"system":"s","idempotency_key":"chapter-1"}' };
  const { stdout } = await program(["llm_batch", "--concurrency", "2", "--json", "--model", "up/up-2"], { input, env });
  expect(JSON.parse(stdout)).toHaveLength(3);
  const items = [{ prompt: "a" }, { prompt: "b", max_tokens: 5 }, { messages: [{ role: "user", content: "c" }] }];
  expect(bodies()).toEqual([{ items, system: "s", model: "up/up-2", concurrency: 2 }]);
  expect(proxy.requests[0]?.headers["idempotency-key"]).toBe("chapter-1");
});

it("runs the function after which a link to it is named", async () => {
  await Promise.all(["llm_query", "llm_batch"].map((name) => symlink(STUB, join(folder, name))));
  const env = { PATH: `${folder}:${process.env["PATH"]}` };
  expect(await start("llm_query", ["a link"], { env })).toMatchObject({ status: 0, stdout: "a link\n" });
  expect(await start("llm_batch", ["--lines"], { env, input: "a\nb\n" })).toMatchObject({ stdout: '["a","b"]\n' });
});

it("reads the prompt from standard input if there is no argument", async () => {
  expect(await program(["llm_query"], { input: "from a pipe\n" })).toMatchObject({ stdout: "from a pipe\n" });
});

it("ends the answer with a newline, and keeps the answer's own newlines", async () => {
  expect(await program(["llm_query", "two lines\n\n"])).toMatchObject({ stdout: "two lines\n\n\n" });
});

it("carries prompts and answers of any length with any character, whatever shell options the caller has set", async () => {
  await writeFile(join(folder, "file"), "");
  const long = `x${"漢字🦉".repeat(9_000)}`;
  const prompts = [long, "* ? [a-z]", "a  b\tc", "$(id) `id` ${IFS}", 'header = "x: y"\n-K', "\u0001\u007f"];
  const strange = `IFS=x; shopt -s nullglob failglob extglob; set -f; trap 'echo trapped' ERR; set -E`;
  const given = { input: JSON.stringify(prompts), env: { FANOUT_OPTIONS: '{"max_tokens":30000}' } };
  const { status, stdout } = await script(`${strange}\nllm_batch --json`, given);
  const answers = JSON.parse(stdout) as string[];
  expect([status, answers.slice(1), promptsSent()?.slice(1)]).toEqual([0, prompts.slice(1), prompts.slice(1)]);
  // Compared here: expect() would print both.
  expect([answers[0] === long, promptsSent()?.[0] === long]).toEqual([true, true]);
  expect(await script(`${strange}\nllm_query "$(printf '%0500000d' 0)" >out`)).toMatchObject({ status: 0 });
  expect((bodies()[1] as { prompt: string }).prompt).toHaveLength(500_000);
});

it("repeats a request whose answer was cut, whatever shell options the caller has set", async () => {
  const slots = [0, 1].map((index) => `${JSON.stringify({ type: "slot", index, result: `${index}` })}\n`);
  const completed = '{"type":"group_completed"}\n';
  const keys: unknown[] = [];
  const server = createServer((request, response) => {
    keys.push(request.headers["idempotency-key"]);
    const isFirst = keys.length % 2 === 1;
    if (request.url === "/batch") return response.end(isFirst ? slots[0] : slots.join("") + completed);
    if (!isFirst) return response.end('{"text":"whole"}');
    response.writeHead(200, { "content-length": "100" }).write('{"text":"wh', () => request.socket.end());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const env = { FANOUT_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
  const strange = `IFS=0; trap 'echo trapped' ERR; set -E`;
  expect(await script(`${strange}; llm_query p`, { env })).toMatchObject({ status: 0, stdout: "whole\n" });
  expect(await script(`${strange}; llm_stream a b`, { env })).toMatchObject({ status: 0, stdout: slots.join("") });
  expect([keys.length, new Set(keys.slice(0, 2)).size, new Set(keys.slice(2)).size]).toEqual([4, 1, 1]);
});

it("leaves the caller's variables, traps and shell options as they are", async () => {
  const show = `shopt -po; shopt -p; trap; printf '%q' "$IFS"; echo "$LC_ALL"; compgen -v | grep -v -e FANOUT_ -e BASH -e FUNC -e PIPE -e _ | sort`;
  const text = `LC_ALL=C.UTF-8; IFS=:; trap 'echo bye' EXIT\nlook() { ${show}; }\nbefore='' after=''; before=$(look)
    llm_query p >out; llm_batch --lines <<<'a' >out; llm_stream p >out; with_run calls=1 llm_query p >out; after=$(look)
    [[ $before == "$after" ]] && echo same`;
  expect(await script(text)).toMatchObject({ status: 0, stdout: "same\nbye\n" });
});

it.each([
  ["budget_exhausted", 4, "false", "402"],
  ["upstream_error", 1, "false", "502"],
  ["unreachable", 75, "true", ""],
  ["timeout", 75, "true", ""],
  ["no_token", 3, "false", ""],
  ["bad_url", 3, "false", ""],
  ["wrong_use", 2, "false", ""],
  ["no_program", 3, "false", ""],
])(
  "reports %s by exit status %i, in variables, and in one line of standard error",
  async (code, status, retryable, http) => {
    const poor = await world.openRun({ default_model: "up-1", budget: { usd: 1e-9 } });
    const prompt = code === "upstream_error" ? "{{status/400}}" : code === "timeout" ? "{{delay/3000}}" : "p";
    const env: Record<string, Record<string, string>> = {
      budget_exhausted: { FANOUT_TOKEN: poor.token },
      unreachable: { FANOUT_URL: "http://127.0.0.1:1/" },
      timeout: { FANOUT_TIMEOUT_S: "0.5" },
      no_token: { FANOUT_TOKEN: "" },
      bad_url: { FANOUT_URL: "ftp://127.0.0.1" },
      wrong_use: { FANOUT_OPTIONS: "{" },
    };
    const path = code === "no_program" ? "PATH=/nowhere\n" : "";
    const text = `${path}llm_query "$P" || echo "$? $FANOUT_ERROR_CODE $FANOUT_ERROR_RETRYABLE $FANOUT_ERROR_STATUS"`;
    const ended = await script(text, { env: { P: prompt, ...env[code] } });
    expect(ended).toMatchObject({ status: 0, stdout: `${status} ${code} ${retryable} ${http}\n` });
    expect(ended.stderr).toMatch(new RegExp(`^fanout: ${code}: [^\\n]+`));
    const stream = await script(`llm_stream "$P"`, { env: { P: prompt, ...env[code] } });
    if (["unreachable", "timeout", "no_token", "bad_url", "wrong_use"].includes(code))
      expect(stream.status).toBe(status);
  },
);

it("ends a script with set -e when a call fails, unless the script checks the call", async () => {
  const env = { FANOUT_TOKEN: "forged" };
  expect(await script("answer=$(llm_query p); echo on", { env })).toMatchObject({ status: 1, stdout: "" });
  expect(await script("llm_query_batch p; echo on", { env })).toMatchObject({ status: 1, stdout: "" });
  expect(await script("if ! llm_query p 2>/dev/null; then echo on; fi", { env })).toMatchObject({ stdout: "on\n" });
  expect(await script("llm_stream p", { env })).toMatchObject({
    status: 1,
    stderr: expect.stringContaining("invalid_api_key"),
  });
});

it.each(['a\nheader = "x: y"', 'a"b', "a\\", "a b", "té"])(
  "refuses a token that could add headers or options: %j",
  async (token) => {
    expect(await program(["llm_query", "p"], { env: { FANOUT_TOKEN: token } })).toMatchObject({ status: 3 });
    expect(proxy.requests).toEqual([]);
  },
);

it("refuses an idempotency key that could end its header", async () => {
  const env = { FANOUT_OPTIONS: JSON.stringify({ idempotency_key: "k\r\nx: y" }) };
  expect(await program(["llm_query", "p"], { env })).toMatchObject({ status: 2 });
  expect(proxy.requests).toEqual([]);
});

it("shows no token in the trace of a script", async () => {
  const { stderr, stdout } = await script(
    "set -x\nllm_query p\nllm_stream p\nllm_usage\nwith_run calls=1 llm_query child",
  );
  expect(stdout).toContain("llm_calls");
  expect(stderr).toContain("llm_query p");
  expect(stderr).toContain("llm_query child");
  const tokens = proxy.requests.map(({ headers }) => headers.authorization?.replace("Bearer ", "") ?? "");
  expect(new Set(tokens).size).toBe(2);
  for (const token of tokens) expect(stderr).not.toContain(token);
});

it("streams into a reader that stops early", async () => {
  const { stdout } = await script(`set +o pipefail; llm_stream a b c | head -n 1 | jq -r .type`);
  expect(stdout).toBe("slot\n");
});

it("resets the usage counters on request, and logs fields of any type", async () => {
  const text = `llm_query p >/dev/null; llm_usage --reset | jq .llm_calls; llm_usage | jq .llm_calls
    llm_log execution_result '{"output":"42","hasError":false,"data":[1]}'; FINAL '{"a":1}'`;
  expect(await script(text)).toMatchObject({ status: 0, stdout: "1\n0\n" });
  const log = (await run.send(`/runs/${run.id}/log`)).text.trimEnd().split("\n");
  const events = log.map((line) => JSON.parse(line) as unknown);
  const result = { event_type: "execution_result", output: "42", hasError: false, data: [1] };
  expect(events).toContainEqual(expect.objectContaining(result));
  const final = { event_type: "final_result", output: '{"a":1}', data: '{"a":1}' };
  expect(events).toContainEqual(expect.objectContaining(final));
});

/** The requests that the proxy received, without the ids of runs. */
const requests = (): string[] =>
  proxy.requests.map(({ method, path }) => `${method} ${path.replace(/run_\w+/, ":id")}`);
const CHILD_OF_ONE_QUERY = ["POST /runs", "POST /query", "POST /runs/:id/close"];

it("opens a child run with limits and other settings, which are JSON if they parse as JSON", async () => {
  const text = `with_run usd=0.5 calls=3 name=part 'metadata={"a":1}' eval 'echo "$FANOUT_RUN_ID"'`;
  const { status, stdout } = await script(text);
  expect([status, requests()]).toEqual([0, ["POST /runs", "POST /runs/:id/close"]]);
  expect(bodies()[0]).toEqual({ budget: { usd: 0.5, calls: 3 }, name: "part", metadata: { a: 1 } });
  expect(proxy.requests[1]?.path).toBe(`/runs/${stdout.trim()}/close`);
});

it("refuses to open a child run without a command", async () => {
  expect(await program(["with_run", "usd=0.5"])).toMatchObject({ status: 2, stdout: "" });
  expect(proxy.requests).toEqual([]);
});

it("passes the token of a child run on to the programs that its command starts", async () => {
  const { status, stdout } = await program(["with_run", "calls=1", "bash", STUB, "llm_query", "p"]);
  expect([status, stdout, requests()]).toEqual([0, "p\n", CHILD_OF_ONE_QUERY]);
  const tokens = proxy.requests.map(({ headers }) => headers.authorization === `Bearer ${run.token}`);
  expect(tokens).toEqual([true, false, true]);
});

it("ends a command in a child run at its first failure if the script has set -e", async () => {
  const text = `work() { llm_query p; false; echo on; }\nwith_run calls=1 work\necho after`;
  expect(await script(text)).toMatchObject({ status: 1, stdout: "p\n" });
  expect(requests()).toEqual(CHILD_OF_ONE_QUERY);
});

it("closes a child run whose command exits or sets a trap of its own", async () => {
  const text = `work() { trap 'echo own' EXIT; llm_query p; exit 7; }\nwith_run calls=1 work || echo "$?"`;
  expect(await script(text)).toMatchObject({ status: 0, stdout: "p\nown\n7\n" });
  expect(requests()).toEqual(CHILD_OF_ONE_QUERY);
});

it("reports why a command in a child run failed, also if the call was inside $(…)", async () => {
  const text = `work() { llm_query one; local answer; answer=$(llm_query two); echo on; }
    inner() { with_run calls=1 work; }
    with_run calls=2 inner || echo "$? $FANOUT_ERROR_CODE $FANOUT_ERROR_STATUS"`;
  // In a list with ||, Bash ignores set -e: the command continues.
  expect(await script(text)).toMatchObject({ status: 0, stdout: "one\non\n" });
  const careful = text.replace("$(llm_query two)", "$(llm_query two) || return");
  expect(await script(careful)).toMatchObject({ status: 0, stdout: "one\n4 budget_exhausted 402\n" });
});

it("prints its usage when it is run without the name of a function", async () => {
  expect(await program([])).toMatchObject({ status: 2, stderr: expect.stringContaining("llm_batch [--json") });
  expect(await program(["_fanout_send"])).toMatchObject({ status: 2 });
});
