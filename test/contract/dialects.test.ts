/** Other systems' clients at the gateway, none of which knows of it: their requests to the letter, their ways of reading. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { rlmDocker, rlmSandbox, rlmTraining, verifiersTool, type ListClient } from "../support/dialect-clients.ts";
import { EXCHANGES } from "../support/fixtures/dialects.ts";
import { postExactly } from "../support/python-http.ts";
import { documentOf, PROVIDER_KEY, startWorld, type RunAccess, type World } from "./world.ts";

let world: World;
let run: RunAccess;
beforeAll(async () => void (world = await startWorld()));
beforeEach(async () => {
  world.upstream.forget();
  run = await world.openRun({ default_model: "up-1", budget: { usd: 1 }, max_parallel: 8 });
});
afterAll(() => world.stop());

/** A text of an exchange with the run's token and id in it. */
const filled = (text: string): string =>
  text
    .replace("{x:token}", () => Buffer.from(`x:${run.token}`).toString("base64"))
    .replace("{token}", run.token)
    .replace("{run}", run.id);

describe("an exchange of another system", () => {
  it.each(EXCHANGES)("$what ($source)", async ({ path, headers, body, status, reads, lacks }) => {
    const sent = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, filled(value)]));
    const answer = await postExactly(world.gateway.url + filled(path), sent, body);
    expect([answer.status, answer.json]).toEqual([status, expect.objectContaining({})]);
    expect(answer.json).toMatchObject(reads);
    for (const field of lacks ?? []) expect(answer.json).not.toHaveProperty(field);
    // An error is a text, with no field beside it that could be mistaken for an answer.
    if ("error" in reads) expect(answer.json).toEqual(reads);
    expect(answer.text).not.toContain(run.token);
    expect(answer.text).not.toContain(PROVIDER_KEY);
  });
});

/** An address with the run's token before the host, as programs are given it whose only setting is a URL. */
const withToken = (): string => world.gateway.url.replace("://", `://x:${run.token}@`);

const below = (): string => `${world.gateway.url}/rollout/${run.token}`;

const CLIENTS: [string, () => ListClient, (message: string) => string][] = [
  ["rlm-sandbox", () => rlmSandbox(`${below()}/llm_query?errors=status`), () => "[error] HTTP Error 500"],
  ["rlm in Docker", () => rlmDocker(withToken(), "llm"), (message) => `Error: ${message}`],
  ["rlm in Docker, recursive", () => rlmDocker(withToken(), "rlm"), (message) => `Error: ${message}`],
  ["rlm in Docker, token as a path", () => rlmDocker(below(), "llm"), (message) => `Error: ${message}`],
  ["rlm in training", () => rlmTraining(world.gateway.url, run.token), (message) => `Error: ${message}`],
  [
    "verifiers",
    () => ({ one: null, list: async (prompts) => await verifiersBatch()([prompts]) }),
    (message) => `Error in sub-LLM call: ${message}`,
  ],
];

const verifiersBatch = () =>
  verifiersTool(`${world.gateway.url}/rollout/${run.id}/v1/rlm/tools`, run.token, "llm_batch");

const REFUSED = "up answered 400: the upstream was told to answer 400";

describe.each(CLIENTS)("%s", (_, client, failed) => {
  it("gets 60 answers in order, whichever ends first, and each failure at its index", { tags: ["slow"] }, async () => {
    const prompts = Array.from({ length: 60 }, (_, index) => {
      if (index % 10 === 3) return `{{status/400}} ${index}`;
      return `{{delay/${(60 - index) * 2}}} naïve 漢字 🦉\n"${index}" \\ \u2028`;
    });
    const expected = prompts.map((prompt) => (prompt.includes("status") ? failed(REFUSED) : prompt));
    expect(await client().list(prompts)).toEqual(expected);
    expect(world.upstream.counters.requests).toBe(60);
    expect([...world.upstream.counters.sends.values()].every((sends) => sends === 1)).toBe(true);
    const { budget, stats } = await documentOf(run);
    expect([stats.total_queries, stats.pending_queries, budget.usd.reserved]).toEqual([60, 0, 0]);
  });

  it("gets an empty list for an empty list", async () => {
    expect(await client().list([])).toEqual([]);
    expect(world.upstream.counters.requests).toBe(0);
    expect((await documentOf(run)).stats.total_queries).toBe(0);
  });

  it("gets one answer with every character unchanged", async () => {
    const text = "naïve 漢字 🦉 \u0001 \\u0041";
    const { one, list } = client();
    expect(one === null ? await list([text]) : await one(text)).toEqual(one === null ? [text] : text);
  });

  it("gets an error for each call whose budget is spent, at its index", async () => {
    run = await world.openRun({ default_model: "up-1", budget: { calls: 2 }, max_parallel: 1 });
    const prompts = ["a", "b", "c", "d"];
    const results = await client().list(prompts);
    const spent =
      "Global call budget exceeded: 2 spent, limit is 2; 0 is reserved and this call needs 1; the operator can raise the limit (PATCH /runs/:id)";
    const told = failed(spent).replace("500", "402");
    if (!Array.isArray(results)) throw new Error("no list");
    expect(results.filter((text) => text === told)).toHaveLength(2);
    for (const [index, text] of results.entries()) expect([prompts[index], told]).toContain(text);
    expect((await documentOf(run)).budget.calls).toMatchObject({ limit: 2, spent: 2, reserved: 0 });
  });
});

describe("verifiers", () => {
  it("raises a refusal of the gateway with its message", async () => {
    await expect(verifiersBatch()(["one text"])).rejects.toThrow("llm_batch expects a list of prompts.");
    await expect(verifiersBatch()([["a"], ["b"]])).rejects.toThrow("llm_batch expects a single prompts argument.");
    await expect(verifiersBatch()([["a"]], { prompts: ["b"] })).rejects.toThrow("llm_batch received prompts twice.");
    await expect(verifiersBatch()([["a"]], { model: "m" })).rejects.toThrow("extra keyword arguments: model");
    await expect(verifiersBatch()([])).rejects.toThrow("llm_batch requires a prompts argument.");
    expect(world.upstream.counters.requests).toBe(0);
  });

  it("reads an answer of many pages in which some prompts are not texts", async () => {
    const prompts = Array.from({ length: 300 }, (_, index) =>
      index % 7 === 0 ? index : `${index} ${"x".repeat(2_000)}`,
    );
    const expected = prompts.map((prompt, index) =>
      typeof prompt === "string"
        ? prompt
        : `Error in sub-LLM call: llm_batch prompt at index ${index} must be a string.`,
    );
    expect(await verifiersBatch()([prompts])).toEqual(expected);
  });
});
