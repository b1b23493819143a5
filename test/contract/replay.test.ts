/** Replay: a program that runs again pays for what has changed, and for nothing else. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { startUpstream } from "../support/upstream.ts";
import {
  answerOf,
  documentOf,
  errorOf,
  groupOf,
  replyOf,
  startOwnGateway,
  startWorld,
  type Answer,
  type RunAccess,
  type World,
} from "./world.ts";
import { post, startV1, type Posted } from "./v1-world.ts";

let world: World;
beforeAll(async () => void (world = await startWorld((call) => ({ text: `${call.prompt} #${call.send}` }))));
beforeEach(() => world.upstream.forget());
afterAll(() => world.stop());

const RECORDS = { replay: "run", default_model: "up-1", budget: { usd: 1 }, max_parallel: 8 };
const epoch = (name: string): Record<string, string> => ({ "x-fanout-epoch": name });
const query = (run: RunAccess, prompt: string, name: string, more: object = {}): Promise<Answer> =>
  run.send("/query", { json: { prompt, ...more }, headers: epoch(name) });
const batch = (run: RunAccess, prompts: string[], name: string, more: object = {}): Promise<Answer> =>
  run.send("/batch", { json: { prompts, ...more }, headers: epoch(name) });
const requests = (): number => world.upstream.counters.requests;

describe("a /query of a run that records", () => {
  it("gets the answer of an earlier epoch, at no cost", async () => {
    const run = await world.openRun(RECORDS);
    const first = replyOf(await query(run, "once", "one"));
    const { budget } = await documentOf(run);
    const again = replyOf(await query(run, "once", "two"));
    expect(first.replayed).toBeUndefined();
    expect(again).toMatchObject({ text: first.text, model: first.model, replayed: true, attempts: 0 });
    expect(again.usage).toEqual({ prompt_tokens: 0, completion_tokens: 0, total_tokens: 0, cost: 0 });
    expect([requests(), (await documentOf(run)).budget]).toEqual([1, budget]);
  });

  it("stays a new sample within its epoch: n equal prompts have n answers, in this epoch and the next", async () => {
    const run = await world.openRun(RECORDS);
    const texts = async (name: string): Promise<string[]> => {
      const answers: string[] = [];
      for (let at = 0; at < 3; at += 1) answers.push(replyOf(await query(run, "same", name)).text);
      return answers;
    };
    const first = await texts("one");
    expect(first).toEqual(["same #1", "same #2", "same #3"]);
    expect(await texts("two")).toEqual(first);
    expect(requests()).toBe(3);
    // A program that asks once more than the one before pays for that.
    expect(replyOf(await query(run, "same", "two")).text).toBe("same #4");
  });

  it("without an epoch is counted in the run: it never gets an answer of its own program", async () => {
    const run = await world.openRun(RECORDS);
    const send = (): Promise<Answer> => run.send("/query", { json: { prompt: "plain" } });
    expect([replyOf(await send()).text, replyOf(await send()).text]).toEqual(["plain #1", "plain #2"]);
  });

  it("pays for a changed prompt, cap, temperature or model, and not for another time limit, priority or step", async () => {
    const run = await world.openRun(RECORDS);
    await query(run, "content", "one", { max_tokens: 50 });
    const other = [{ max_tokens: 51 }, { max_tokens: 50, temperature: 0.5 }, { max_tokens: 50, model: "up-2" }];
    for (const more of other) expect(replyOf(await query(run, "content", "two", more)).replayed).toBeUndefined();
    const same = { max_tokens: 50, timeout_ms: 5_000, priority: "high", step: 3, steps: 20 };
    expect(replyOf(await query(run, "content", "three", same)).replayed).toBe(true);
  });

  it("that failed is made again", async () => {
    const run = await world.openRun(RECORDS);
    const failing = { model: "up-1/status/400/first/1" };
    expect((await query(run, "fails", "one", failing)).status).toBe(502);
    expect(replyOf(await query(run, "fails", "one", failing)).replayed).toBeUndefined();
    expect(replyOf(await query(run, "fails", "two", failing)).replayed).toBe(true);
  });

  it("whose answer the budget has cut is made again", async () => {
    // One token more than a prompt of this size reserves for itself: the cap is lowered to the rest.
    const run = await world.openRun({ ...RECORDS, budget: { completion_tokens: 20 } });
    const first = replyOf(await query(run, "cut", "one", { max_tokens: 500, model: "sim/echo" }));
    expect(first.replayed).toBeUndefined();
    const again = await query(run, "cut", "two", { max_tokens: 500, model: "sim/echo" });
    if (first.capped_by === "budget") expect(replyOf(again).replayed).toBeUndefined();
    else expect(replyOf(again).replayed).toBe(true);
  });

  it("is answered from the record when nothing is left of the budget", async () => {
    const run = await world.openRun({ ...RECORDS, budget: { calls: 1 } });
    await query(run, "last", "one");
    expect(errorOf(await query(run, "other", "one")).code).toBe("budget_exhausted");
    expect(replyOf(await query(run, "last", "two"))).toMatchObject({ replayed: true });
    expect(groupOf(await batch(run, ["last"], "three", { on_budget: "refuse" }))).toMatchObject({ replayed: 1 });
  });

  it("that names no proper epoch is refused, and names the header", async () => {
    const run = await world.openRun(RECORDS);
    for (const bad of ["two words", "x".repeat(65)])
      expect(errorOf(await query(run, "bad", bad))).toMatchObject({ code: "invalid_request", param: "x-fanout-epoch" });
    expect(replyOf(await query(run, "good", "x".repeat(64))).text).toBe("good #1");
  });
});

describe("a /batch of a run that records", () => {
  it("pays for a changed prompt alone, whatever the order", async () => {
    const run = await world.openRun(RECORDS);
    const prompts = Array.from({ length: 40 }, (_, index) => `prompt ${index}`);
    const first = groupOf(await batch(run, prompts, "one"));
    expect(first).toMatchObject({ replayed: 0 });
    const changed = [...prompts.toReversed(), "new"];
    const again = groupOf(await batch(run, changed, "two"));
    expect(again).toMatchObject({ replayed: 40, status: "completed" });
    expect(again.results).toEqual([...first.results.toReversed(), "new #1"]);
    expect(again.items.filter(({ replayed }) => replayed === true)).toHaveLength(40);
    expect(again.items[0]).toMatchObject({ attempts: 0, status: "completed" });
    expect(requests()).toBe(41);
  });

  it("has figures of usage for each replayed slot, which cost nothing, in its items and its lines", async () => {
    const run = await world.openRun(RECORDS);
    await batch(run, ["a"], "one");
    const nothing = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0, cost: 0 };
    const slot = { replayed: true, attempts: 0, usage: nothing };
    expect(groupOf(await batch(run, ["a"], "two")).items).toMatchObject([slot]);
    const headers = { ...epoch("three"), accept: "application/x-ndjson" };
    const lines = await run.send("/batch", { json: { prompts: ["a"] }, headers });
    const slotLine = lines.text.split("\n").find((line) => line.includes('"type":"slot"'));
    expect(JSON.parse(slotLine ?? "")).toMatchObject(slot);
    const graph = { tasks: [{ id: "t", prompt: "a" }] };
    expect((await run.send("/dag", { json: graph, headers: epoch("four") })).json).toMatchObject({
      tasks: { t: { attempts: 0, usage: nothing } },
    });
  });

  it("shares its record with /query and with messages of the same content", async () => {
    const run = await world.openRun(RECORDS);
    await batch(run, ["shared"], "one");
    expect(replyOf(await query(run, "shared", "two"))).toMatchObject({ text: "shared #1", replayed: true });
    const messages = [{ content: "shared", role: "user" }];
    const asMessages = await run.send("/query", { json: { messages }, headers: epoch("three") });
    expect(replyOf(asMessages)).toMatchObject({ text: "shared #1", replayed: true });
  });

  it("keeps equal prompts apart", async () => {
    const run = await world.openRun(RECORDS);
    const first = groupOf(await batch(run, ["s", "s", "s"], "one"));
    expect(first.results.toSorted()).toEqual(["s #1", "s #2", "s #3"]);
    const again = groupOf(await batch(run, ["s", "s", "s", "s"], "two"));
    expect(again.results.toSorted()).toEqual(["s #1", "s #2", "s #3", "s #4"]);
    expect(again).toMatchObject({ replayed: 3 });
  });

  it("marks replayed slots in its lines", async () => {
    const run = await world.openRun(RECORDS);
    await batch(run, ["line"], "one");
    const headers = { ...epoch("two"), accept: "application/x-ndjson" };
    const { text } = await run.send("/batch", { json: { prompts: ["line", "fresh"] }, headers });
    const lines: { type: string; result?: string; replayed?: unknown }[] = text
      .trim()
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line));
    const flags = lines.filter(({ type }) => type === "slot").map(({ result, replayed }) => [result, replayed]);
    expect(flags.toSorted()).toEqual([
      ["fresh #1", undefined],
      ["line #1", true],
    ]);
    expect(lines.at(-1)).toMatchObject({ type: "group_completed", replayed: 1 });
  });

  it("replays while the run is paused, because that takes no permit", async () => {
    const run = await world.openRun(RECORDS);
    await batch(run, ["a", "b"], "one");
    await world.sendAsOperator(`/runs/${run.id}`, { method: "PATCH", json: { paused: true } });
    expect(groupOf(await batch(run, ["a", "b"], "two"))).toMatchObject({ replayed: 2, status: "completed" });
  });

  it("with an early stop counts replayed answers", async () => {
    const run = await world.openRun(RECORDS);
    await batch(run, ["1", "2", "3"], "one");
    const stop = { stop_when: { n_success: 2 }, concurrency: 1 };
    const stopped = groupOf(await batch(run, ["1", "2", "3"], "two", stop));
    expect([stopped.status, requests()]).toEqual(["completed", 3]);
  });
});

describe("a /dag of a run that records", () => {
  it(
    "replays tasks whose inserted outputs are the same, and pays below a changed one",
    { tags: ["slow"] },
    async () => {
      const run = await world.openRun(RECORDS);
      const tasks = (first: string): object => ({
        tasks: [
          { id: "a", prompt: first },
          { id: "b", prompt: "b" },
          { id: "c", prompt: "{{a.output}} and {{b.output}}" },
        ],
      });
      const dag = (first: string, name: string): Promise<Answer> =>
        run.send("/dag", { json: tasks(first), headers: epoch(name) });
      const first = await dag("a", "one");
      expect([first.status, requests()]).toEqual([200, 3]);
      const again = await dag("a", "two");
      expect(requests()).toBe(3);
      expect(again.json).toMatchObject({ status: "completed", replayed: 3 });
      const changed = await dag("A", "three");
      expect(requests()).toBe(5);
      expect(changed.json).toMatchObject({ status: "completed", replayed: 1 });
    },
  );
});

describe("replay_from", () => {
  it("replays another run's answers in a new run, which records them for the next", async () => {
    const first = await world.openRun(RECORDS);
    const prompts = ["x", "y", "z", "z"];
    const { results } = groupOf(await batch(first, prompts, "one"));
    await query(first, "alone", "one");
    await world.sendAsOperator(`/runs/${first.id}/close`, { method: "POST" });
    let from = first.id;
    for (let life = 0; life < 3; life += 1) {
      const run = await world.openRun({ ...RECORDS, replay_from: from, budget: { usd: 0 } });
      const again = groupOf(await batch(run, prompts, "one"));
      expect(again.results.toSorted()).toEqual(results.toSorted());
      expect(replyOf(await query(run, "alone", "one"))).toMatchObject({ text: "alone #1", replayed: true });
      // Each answer is one sample, also in a run that has it from another one.
      expect(errorOf(await query(run, "alone", "one")).code).toBe("budget_exhausted");
      from = run.id;
    }
    expect(requests()).toBe(5);
  });

  it("is refused without the token of that run: a run learns nothing of what exists", async () => {
    const [secret, other] = [await world.openRun(RECORDS), await world.openRun(RECORDS)];
    await query(secret, "secret", "one");
    const child = await other.send("/runs", { json: { replay_from: secret.id } });
    const none = await other.send("/runs", { json: { replay_from: `run_${"0".repeat(64)}` } });
    expect([child.status, errorOf(child).code, errorOf(none).code]).toEqual([404, "not_found", "not_found"]);
  });

  it("lets a child replay its parent's answers, and lets the parent replay those of a child", async () => {
    const parent = await world.openRun(RECORDS);
    await query(parent, "family", "one");
    const opened = await parent.send("/runs", { json: { replay_from: parent.id } });
    expect(opened.status).toBe(201);
    expect(opened.json).toMatchObject({ replay: "run", replay_from: parent.id });
    const { id, token } = opened.json as { id: string; token: string };
    const child: RunAccess = { id, token, send: (path, request) => world.send(path, { token, ...request }) };
    expect(replyOf(await query(child, "family", "one"))).toMatchObject({ text: "family #1", replayed: true });
    const sibling = await parent.send("/runs", { json: { replay_from: id } });
    expect(sibling.status).toBe(201);
    expect((await child.send("/runs", { json: { replay_from: parent.id } })).status).toBe(404);
  });

  it("is refused for a run that records nothing, and says what to do", async () => {
    const plain = await world.openRun();
    const answer = await world.sendAsOperator("/runs", { json: { replay_from: plain.id } });
    const error = errorOf(answer);
    expect([answer.status, error.param]).toEqual([400, "replay_from"]);
    expect(error.message).toContain('"replay": "run"');
  });
});

describe("a child of a run that records", () => {
  const childOf = async (parent: RunAccess, request: object = {}): Promise<RunAccess> => {
    const opened = await parent.send("/runs", { json: request });
    expect([opened.status, opened.json]).toMatchObject([201, { replay: "run" }]);
    const { id, token } = opened.json as { id: string; token: string };
    return { id, token, send: (path, more) => world.send(path, { token, ...more }) };
  };
  const asked = async (run: RunAccess, prompt: string, name: string): Promise<[string, boolean]> => {
    const { text, replayed } = replyOf(await query(run, prompt, name));
    return [text, replayed === true];
  };

  it("records, and replays its parent's answers, of /query, /batch and /v1, at no cost", async () => {
    const parent = await world.openRun(RECORDS);
    await query(parent, "one", "first");
    await batch(parent, ["two", "three"], "first");
    const child = await childOf(parent, { budget: { usd: 0 } });
    expect(await documentOf(child)).toMatchObject({ replay: "run", replay_from: parent.id });
    expect(await asked(child, "two", "second")).toEqual(["two #1", true]);
    expect(groupOf(await batch(child, ["three", "one"], "second"))).toMatchObject({
      status: "completed",
      results: ["three #1", "one #1"],
      replayed: 2,
    });
    expect(requests()).toBe(3);
    // It has copies of its own: another life of the child needs no parent for them.
    expect(await asked(child, "one", "third")).toEqual(["one #1", true]);
  });

  it("counts as part of its parent's program: within an epoch n equal calls of the tree have n answers", async () => {
    const parent = await world.openRun(RECORDS);
    const [a, b] = [await childOf(parent), await childOf(parent)];
    expect(await asked(parent, "same", "first")).toEqual(["same #1", false]);
    expect(await asked(a, "same", "first")).toEqual(["same #2", false]);
    // Its own answers first.
    expect(await asked(a, "same", "second")).toEqual(["same #2", true]);
    expect(await asked(a, "same", "second")).toEqual(["same #1", true]);
    expect(await asked(b, "same", "second")).toEqual(["same #3", false]);
    expect(await asked(parent, "same", "second")).toEqual(["same #4", false]);
  });

  it("does not read the answers of its siblings, nor does its parent read its own", async () => {
    const parent = await world.openRun(RECORDS);
    const [a, b] = [await childOf(parent), await childOf(parent)];
    expect(await asked(a, "own", "first")).toEqual(["own #1", false]);
    expect(await asked(b, "own", "second")).toEqual(["own #2", false]);
    expect(await asked(parent, "own", "third")).toEqual(["own #3", false]);
    expect(await asked(a, "own", "fourth")).toEqual(["own #1", true]);
  });

  it("reaches what its parent replays: the answers of the runs above, and of the run that they replay", async () => {
    const before = await world.openRun(RECORDS);
    await query(before, "old", "first");
    const root = await world.openRun({ ...RECORDS, replay_from: before.id });
    await query(root, "root", "first");
    const grandchild = await childOf(await childOf(root));
    expect(await asked(grandchild, "old", "second")).toEqual(["old #1", true]);
    expect(await asked(grandchild, "root", "second")).toEqual(["root #1", true]);
    expect(requests()).toBe(2);
  });

  it("that names another run replays that one instead of its parent", async () => {
    const parent = await world.openRun(RECORDS);
    await query(parent, "parent's", "first");
    const a = await childOf(parent);
    await query(a, "a's", "first");
    const b = await childOf(parent, { replay_from: a.id });
    expect(await documentOf(b)).toMatchObject({ replay_from: a.id });
    expect(await asked(b, "a's", "second")).toEqual(["a's #1", true]);
    expect((await asked(b, "parent's", "second"))[1]).toBe(false);
  });

  it("of a run that records nothing replays its own answers alone", async () => {
    const parent = await world.openRun({ default_model: "up-1", budget: { usd: 1 } });
    await query(parent, "plain", "first");
    const child = await childOf(parent, { replay: "run" });
    expect(await documentOf(child)).toMatchObject({ replay_from: null });
    expect(await asked(child, "plain", "second")).toEqual(["plain #2", false]);
    expect(await asked(child, "plain", "third")).toEqual(["plain #2", true]);
  });
});

describe("/v1 of a run that records", () => {
  const chat = (run: RunAccess, body: object, name: string): Promise<Answer> =>
    run.send("/v1/chat/completions", { json: { model: "up-1", ...body }, headers: epoch(name) });
  const messages = [{ role: "user", content: "v1" }];

  it.each([false, true])("answers with the recorded bytes (stream: %s)", async (stream) => {
    const run = await world.openRun(RECORDS);
    const first = await chat(run, { messages, stream }, "one");
    const again = await chat(run, { messages, stream }, "two");
    expect([first.status, first.headers.get("x-fanout-replayed")]).toEqual([200, null]);
    expect([again.status, again.headers.get("x-fanout-replayed")]).toEqual([200, "true"]);
    expect([again.text, again.headers.get("content-type")]).toEqual([first.text, first.headers.get("content-type")]);
    expect(requests()).toBe(1);
    const fresh = await chat(run, { messages, stream }, "two");
    expect(fresh.headers.get("x-fanout-replayed")).toBeNull();
  });

  it("does not answer a request with another's big number", async () => {
    const run = await world.openRun(RECORDS);
    const raw = (seed: string): Promise<Answer> =>
      run.send("/v1/chat/completions", {
        method: "POST",
        headers: { "content-type": "application/json", ...epoch(seed) },
        body: `{"model":"up-1","messages":[{"role":"user","content":"n"}],"seed":${seed}}`,
      });
    await raw("9007199254740993");
    expect((await raw("9007199254740992")).headers.get("x-fanout-replayed")).toBeNull();
  });
});

describe("a stream of a run that records", () => {
  const BODY = JSON.stringify({ model: "up-1", stream: true, messages: [{ role: "user", content: "s" }] });
  const event = (content: string): string =>
    `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`;
  const USAGE = 'data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}\n\n';
  const SSE = { headers: { "content-type": "text/event-stream" } };

  it(
    "is not recorded if the upstream cuts it, or if its client leaves before its end",
    { tags: ["slow"] },
    async () => {
      const v1 = await startV1();
      onTestFinished(() => v1.stop());
      const { token } = await v1.gateway.openRun({ replay: "run" });
      const send = (name: string): Posted =>
        post(v1.gateway, "/v1/chat/completions", token, BODY, { headers: epoch(name) });
      v1.upstream.serve(async (_, reply) => {
        reply.begin(SSE);
        await reply.write(event("cut"));
        reply.reset();
      });
      await send("one").body;
      v1.upstream.serve(async (_, reply) => {
        reply.begin(SSE);
        await reply.write(event("left"));
      });
      const left = send("two");
      await left.response;
      left.leave();
      await left.body;
      v1.upstream.serve(async (_, reply) => {
        reply.begin(SSE);
        await reply.write(event("whole"));
        await reply.write(USAGE);
        await reply.write("data: [DONE]\n\n");
        reply.end();
      });
      const whole = (await send("three").body).bytes.toString();
      expect(whole).toContain("whole");
      const replayed = send("four");
      expect((await replayed.response).headers["x-fanout-replayed"]).toBe("true");
      expect((await replayed.body).bytes.toString()).toBe(whole);
      expect(v1.upstream.calls).toHaveLength(3);
    },
  );
});

describe("the operator under x-fanout-run", () => {
  it("records and replays like the run's own program", async () => {
    const run = await world.openRun(RECORDS);
    const send = (name: string): Promise<Answer> =>
      world.sendAsOperator("/query", { json: { prompt: "op" }, headers: { "x-fanout-run": run.id, ...epoch(name) } });
    await send("one");
    expect(replyOf(await send("two"))).toMatchObject({ text: "op #1", replayed: true });
  });
});

describe("a run that records nothing", () => {
  it("makes every call", async () => {
    const run = await world.openRun({ default_model: "up-1" });
    await query(run, "plain", "one");
    expect(replyOf(await query(run, "plain", "two"))).toMatchObject({ text: "plain #2" });
    const group = groupOf(await batch(run, ["plain"], "three"));
    expect([group.results, group.replayed]).toEqual([["plain #3"], undefined]);
  });
});

describe("a gateway that is killed", () => {
  it("has every answer that a client has seen, and gives none twice in an epoch", { tags: ["slow"] }, async () => {
    const dataDir = await mkdtemp(join(tmpdir(), "fanout-replay-"));
    const upstream = await startUpstream((call) => ({ text: `${call.prompt} #${call.send}` }));
    onTestFinished(async () => {
      await upstream.stop();
      await rm(dataDir, { recursive: true, force: true });
    });
    const UPSTREAMS = {
      up: { kind: "openai", base_url: upstream.baseUrl, models: ["up-*"], prices: { "*": { input: 1, output: 2 } } },
    };
    const vars = { ADMIN_KEY: "the-admin-key-of-this-test-which-is-long", UPSTREAMS };
    const first = await startOwnGateway({ dataDir, vars });
    const { token } = await first.openRun(RECORDS);
    const send = async (gateway: typeof first, path: string, json: object, name: string): Promise<Answer> =>
      answerOf(await gateway.fetch(path, { token, json, headers: epoch(name) }));
    await send(first, "/query", { prompt: "q" }, "one");
    await send(first, "/query", { prompt: "q" }, "one");
    await send(first, "/batch", { prompts: ["b", "b"] }, "one");
    const before = replyOf(await send(first, "/query", { prompt: "q" }, "two"));
    await first.kill();
    const second = await startOwnGateway({ dataDir, vars });
    const after = replyOf(await send(second, "/query", { prompt: "q" }, "two"));
    expect([before.text, after.text].toSorted()).toEqual(["q #1", "q #2"]);
    const group = groupOf(await send(second, "/batch", { prompts: ["b", "q", "b"] }, "three"));
    expect(group).toMatchObject({ replayed: 3 });
    expect(upstream.counters.requests).toBe(4);
  });
});
