/** Failures: the gateway's, those of a broken answer, and the stub's own. */
import { readdir, readFile } from "node:fs/promises";
import { expect, it } from "vitest";
import { sleep, text, texts, type Script } from "../script.ts";

export function failures(script: Script): void {
  it("reports a refusal with its code and status, and what a call that was made has used up", async () => {
    const poor = await script.world.openRun({ default_model: "up-1", budget: { usd: 0.000000001 } });
    const env = { FANOUT_TOKEN: poor.token };
    expect(await script.drive(["query", "p"], env)).toEqual([
      { kind: "failure", code: "budget_exhausted", status: 402, retryable: false },
    ]);
    expect(texts(await script.drive(["batch", "p"], env))[0]).toMatch(/^\[error\] ./);
    expect(await script.drive(["query", "{{status/400}}"])).toEqual([
      {
        kind: "failure",
        code: "upstream_error",
        status: expect.any(Number),
        retryable: false,
        attempts: 1,
        chargedUsd: 0,
      },
    ]);
    expect(await script.drive(["batch", "p"], { FANOUT_TOKEN: "forged" })).toEqual([
      { kind: "failure", code: "invalid_api_key", status: 401, retryable: false },
    ]);
    expect(script.world.upstream.counters.requests).toBe(1);
  });

  it("finds the gateway at an address with /v1 at its end, which other clients want", async () => {
    const withVersion = { FANOUT_URL: `${script.world.gateway.url}/v1` };
    expect(await script.drive(["query", "p"], withVersion)).toEqual([text("p")]);
    expect(await script.drive(["query", "p"], { FANOUT_URL: `${withVersion.FANOUT_URL}/` })).toEqual([text("p")]);
  });

  it("sends no request without a token, and reads the variables under their other names", async () => {
    const proxy = await script.proxyTo([]);
    const withoutToken = { FANOUT_URL: proxy.url, FANOUT_TOKEN: "" };
    expect(await script.drive(["query", "p"], withoutToken)).toEqual([
      { kind: "failure", code: "no_token", status: null, retryable: false },
    ]);
    expect(proxy.requests).toEqual([]);
    const otherNames = { FANOUT_URL: "", FANOUT_TOKEN: "", GATEWAY_URL: proxy.url, GATEWAY_TOKEN: script.run.token };
    expect(await script.drive(["query", "p"], otherNames)).toEqual([text("p")]);
    expect(proxy.requests).toHaveLength(1);
  });

  it.each(["query", "batch"])("ends a %s after too long a silence", async (command) => {
    const proxy = await script.proxyTo([]);
    const records = await script.drive([command, "{{delay/8000}}"], { FANOUT_URL: proxy.url, FANOUT_TIMEOUT_S: "1" });
    expect(records).toEqual([{ kind: "failure", code: "timeout", status: null, retryable: true }]);
    expect(proxy.requests).toHaveLength(1);
  });

  it("reports an answer that is not JSON as bad_answer", async () => {
    const proxy = await script.proxyTo(["garbage", "garbage"]);
    const env = { FANOUT_URL: proxy.url };
    const bad = { kind: "failure", code: "bad_answer", retryable: false };
    expect(await script.drive(["query", "p"], env)).toEqual([expect.objectContaining(bad)]);
    expect(await script.drive(["batch", "p"], env)).toEqual([expect.objectContaining(bad)]);
    expect(proxy.requests).toHaveLength(2);
  });

  it("follows no redirect: the token is sent to no other host", async () => {
    const proxy = await script.proxyTo(["elsewhere"]);
    const answer = await script.drive(["query", "p"], { FANOUT_URL: proxy.url });
    expect(answer).toEqual([expect.objectContaining({ kind: "failure", code: "bad_answer" })]);
    expect([proxy.requests.length, proxy.strayed]).toEqual([1, []]);
  });

  it("puts its token on no command line", async () => {
    const running = script.startDriver(["query", "{{delay/700}}"]);
    const seen: string[] = [];
    for (let ended = false; !ended;) {
      ended = await Promise.race([running.ended.then(() => true), sleep(50)]);
      seen.push(...(await commandLines()));
    }
    expect(seen.length).toBeGreaterThan(0);
    expect(seen.filter((line) => line.includes(script.run.token))).toEqual([]);
  });
}

/** The command lines of all processes of this machine. */
async function commandLines(): Promise<string[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  return Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")));
}
