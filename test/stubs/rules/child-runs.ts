/** Child runs: which token each request carries, what the child may spend, and that it is closed however its scope ends. */
import { expect, it } from "vitest";
import type { FaultyProxy } from "../../support/faulty-proxy.ts";
import { text, texts, type Script } from "../script.ts";

export function childRuns(script: Script): void {
  it("spends the budget of a child run inside its scope, and returns the rest when the scope ends", async () => {
    const proxy = await script.proxyTo([]);
    const env = { FANOUT_URL: proxy.url };
    expect(await script.drive(["child", "5", "one", "two"], env)).toEqual([text("one"), text("two")]);
    expect(requestsOf(proxy)).toEqual(["POST /runs", "POST /query", "POST /query", "POST /runs/:id/close"]);
    expect(JSON.parse(proxy.requests[0]?.body ?? "")).toEqual({ budget: { calls: 5 } });
    // The parent opens and closes the child; inside the scope only the child's token is sent.
    expect(tokensOf(proxy)).toEqual([0, 1, 1, 0]);
    expect(await callsOf(script)).toEqual({ spent: 2, reserved: 0 });
    // The usage of a run does not include its children.
    expect(texts(await script.drive(["usage"]))).toEqual(["0"]);
  });

  it("closes the child when its scope ends with a failure, which the caller receives", async () => {
    const proxy = await script.proxyTo([]);
    const records = await script.drive(["child", "1", "one", "two", "three"], { FANOUT_URL: proxy.url });
    const failure = { kind: "failure", code: "budget_exhausted", status: 402, retryable: false };
    expect(records).toEqual([text("one"), failure]);
    expect(requestsOf(proxy)).toEqual(["POST /runs", "POST /query", "POST /query", "POST /runs/:id/close"]);
    expect(await callsOf(script)).toEqual({ spent: 1, reserved: 0 });
  });

  it("reports a close that fails, unless the scope has failed already", async () => {
    const failing = await script.proxyTo(["pass", "pass", "garbage"]);
    expect(await script.drive(["child", "1", "one"], { FANOUT_URL: failing.url })).toEqual([
      text("one"),
      expect.objectContaining({ kind: "failure", code: "bad_answer" }),
    ]);
    const both = await script.proxyTo(["pass", "pass", "pass", "garbage"]);
    expect(await script.drive(["child", "1", "one", "two"], { FANOUT_URL: both.url })).toEqual([
      text("one"),
      expect.objectContaining({ kind: "failure", code: "budget_exhausted" }),
    ]);
  });

  it("reports a child that the budget does not cover, and runs nothing of its scope", async () => {
    const parent = await script.world.openRun({ default_model: "up-1", budget: { calls: 1 } });
    const proxy = await script.proxyTo([]);
    const records = await script.drive(["child", "2", "one"], { FANOUT_URL: proxy.url, FANOUT_TOKEN: parent.token });
    expect(records).toEqual([{ kind: "failure", code: "budget_exhausted", status: 402, retryable: false }]);
    expect(requestsOf(proxy)).toEqual(["POST /runs"]);
  });

  it("opens one child and closes it when both connections are lost", async () => {
    const proxy = await script.proxyTo(["deafen", "pass", "pass", "deafen", "drop"]);
    expect(await script.drive(["child", "3", "one"], { FANOUT_URL: proxy.url })).toEqual([text("one")]);
    const [opening, close] = ["POST /runs", "POST /runs/:id/close"];
    expect(requestsOf(proxy)).toEqual([opening, opening, "POST /query", close, close, close]);
    const [first, second] = proxy.requests.map(({ headers }) => headers["idempotency-key"]);
    expect(first).toMatch(/^[\x21-\x7e]{16,255}$/);
    expect(second).toBe(first);
    expect(await callsOf(script)).toEqual({ spent: 1, reserved: 0 });
    const log = (await script.run.send(`/runs/${script.run.id}/log`)).text;
    expect(log.match(/"event_type":"child_opened"/g)).toHaveLength(1);
  });

  it("nests: each request carries the token of the innermost scope", async () => {
    const proxy = await script.proxyTo([]);
    const records = await script.drive(["nested", "p"], { FANOUT_URL: proxy.url });
    expect(records).toEqual(["p", "p", "p", "p"].map(text));
    const [query, opening, close] = ["POST /query", "POST /runs", "POST /runs/:id/close"];
    expect(requestsOf(proxy)).toEqual([opening, query, opening, query, close, query, close, query]);
    expect(tokensOf(proxy)).toEqual([0, 1, 1, 2, 1, 1, 0, 0]);
    expect(await callsOf(script)).toEqual({ spent: 4, reserved: 0 });
  });

  it("keeps children apart that are open at the same time", async () => {
    const prompts = Array.from({ length: 6 }, (_, index) => `child ${index} {{delay/300}}`);
    // Each child has one call: a request under another child's token would be refused.
    expect(texts(await script.drive(["children", ...prompts]))).toEqual(prompts);
    expect(await callsOf(script)).toEqual({ spent: 6, reserved: 0 });
  });
}

function requestsOf({ requests }: FaultyProxy): string[] {
  return requests.map(({ method, path }) => `${method} ${path.replace(/run_\w+/, ":id")}`);
}

/** The tokens of the requests, numbered in the order in which each was first sent. */
function tokensOf({ requests }: FaultyProxy): number[] {
  const tokens = requests.map(({ headers }) => headers.authorization);
  const distinct = [...new Set(tokens)];
  return tokens.map((token) => distinct.indexOf(token));
}

/** The calls of the run whose token the stub has, its children included. */
async function callsOf(script: Script): Promise<{ spent: number; reserved: number }> {
  const { json } = await script.run.send("/budget");
  const { calls } = json as { calls: { spent: number; reserved: number } };
  return { spent: calls.spent, reserved: calls.reserved };
}
