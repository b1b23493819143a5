/** What a batch writes: which lines go to which of its files, what they say, and what it counts and costs. */
import { spawnSync } from "node:child_process";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  chatLine,
  completionOf,
  createBatch,
  endOf,
  linesOf,
  resultsOf,
  runBatch,
  startBatchPlace,
  type BatchPlace,
  type BatchRun,
} from "./batch-place.ts";
import { documentOf, PROVIDER_KEY, replyOf } from "./world.ts";

let place: BatchPlace;
let run: BatchRun;
/** Prompts that begin with "long" are answered when this is resolved. */
let holding: Promise<void> = Promise.resolve();
beforeAll(async () => {
  place = await startBatchPlace(({ prompt }) => (prompt.startsWith("long") ? { after: holding } : {}));
  run = await place.openRun();
});
afterAll(() => place.stop());

describe("a batch of", () => {
  const asked = {
    "/v1/chat/completions": { messages: [{ role: "user", content: "one two" }] },
    "/v1/completions": { prompt: "one two" },
    "/v1/embeddings": { input: ["one", "two"] },
    "/v1/responses": { input: "one two" },
  } as const;
  const said = {
    "/v1/chat/completions": { object: "chat.completion", choices: [{ message: { content: "one two" } }] },
    "/v1/completions": { object: "text_completion", choices: [{ text: "one two" }] },
    "/v1/embeddings": { object: "list", data: [{ index: 0 }, { index: 1 }] },
    "/v1/responses": { object: "response", status: "completed" },
  } as const;
  it.each(["/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses"] as const)(
    "%s returns that endpoint's answers, with usage in one form",
    async (endpoint) => {
      const line = { custom_id: "a", method: "POST", url: endpoint, body: { model: "sim/echo", ...asked[endpoint] } };
      const batch = await runBatch(run, [line, { ...line, custom_id: "b" }], { endpoint });
      expect(batch).toMatchObject({
        status: "completed",
        endpoint,
        error_file_id: null,
        request_counts: { total: 2, completed: 2, failed: 0 },
      });
      const { output } = await resultsOf(run, batch);
      expect([...output.keys()].toSorted()).toEqual(["a", "b"]);
      expect(output.get("a")?.response?.body).toMatchObject(said[endpoint]);
      const { usage } = batch;
      expect(usage).toEqual({
        input_tokens: expect.any(Number),
        input_tokens_details: { cached_tokens: 0 },
        output_tokens: expect.any(Number),
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens: (usage?.input_tokens ?? 0) + (usage?.output_tokens ?? 0),
      });
      expect(usage?.input_tokens).toBeGreaterThan(0);
    },
  );
});

describe("lines that fail", () => {
  it(
    "are in the error file with the upstream's answer, and do not affect other lines",
    { tags: ["slow"] },
    async () => {
      const lines = [
        chatLine("ok", "fine", "up-1"),
        chatLine("bad", "{{status/400}} bad", "up-1"),
        chatLine("denied", "{{status/403}} denied", "up-1"),
        chatLine("broken", "{{status/503}} broken", "up-1"),
        chatLine("error in a 200", "{{fault/error-200}}", "up-1"),
        chatLine("not json", "{{fault/not-json}}", "up-1"),
      ];
      const batch = await runBatch(run, lines);
      expect(batch).toMatchObject({ status: "completed", request_counts: { total: 6, completed: 1, failed: 5 } });
      const { output, error } = await resultsOf(run, batch);
      expect(completionOf(output.get("ok")).text).toBe("fine");
      expect(error.get("bad")).toMatchObject({
        error: null,
        response: { status_code: 400, body: { error: { code: "status_400" } } },
      });
      expect(error.get("broken")).toMatchObject({
        error: null,
        response: { status_code: 503, body: { error: { code: "status_503" } } },
      });
      // The key that was denied is the gateway's. A 401 would say that it does not work at all.
      expect(error.get("denied")).toMatchObject({ error: null, response: { status_code: 502 } });
      for (const id of ["error in a 200", "not json"]) expect([...error.keys()]).toContain(id);
      expect(JSON.stringify([...error.values()])).not.toContain(PROVIDER_KEY);
    },
  );

  it("produce no output file if every line fails, and no error file if every line succeeds", async () => {
    const failed = await runBatch(run, [chatLine("a", "{{status/400}}", "up-1")]);
    expect(failed).toMatchObject({ status: "completed", output_file_id: null, usage: null });
    expect(await linesOf(run, failed.error_file_id)).toHaveLength(1);
    const completed = await runBatch(run, [chatLine("a", "hi")]);
    expect(completed).toMatchObject({ status: "completed", error_file_id: null });
    expect(await linesOf(run, completed.output_file_id)).toHaveLength(1);
  });

  it("name the spent budget as their error, and the batch completes", async () => {
    const poor = await place.openRun({ budget: { calls: 4 }, max_parallel: 2 });
    const batch = await runBatch(
      poor,
      Array.from({ length: 10 }, (_, at) => chatLine(`c${at}`, `hi ${at}`, "up-1")),
    );
    expect(batch).toMatchObject({ status: "completed", request_counts: { total: 10, completed: 4, failed: 6 } });
    const { output, error } = await resultsOf(poor, batch);
    expect([output.size, error.size]).toEqual([4, 6]);
    for (const line of error.values()) {
      expect(line).toMatchObject({ response: null, error: { code: "budget_exhausted" } });
    }
    expect((await documentOf(poor)).budget.calls).toMatchObject({ limit: 4, spent: 4, reserved: 0 });
  });
});

describe("an output file", () => {
  it("has lines that every reader splits alike, whatever characters the answers contain", async () => {
    const prompts = [
      "line\nbreak",
      "\u2028 \u2029 \u0085",
      "\r\n",
      '"quoted" \\',
      "\u0000\u001f",
      "\u000b\u000c\u001c\u001d\u001e",
      "🜁",
    ];
    const lines = prompts.map((prompt, at) => chatLine(`id ${at} \u2028\u0085`, prompt));
    const batch = await runBatch(run, lines);
    const { output } = await resultsOf(run, batch);
    prompts.forEach((prompt, at) => expect(completionOf(output.get(`id ${at} \u2028\u0085`)).text).toBe(prompt));
    const text = await (await run.openai.files.content(batch.output_file_id ?? "")).text();
    const script = "import sys, json; print(len([json.loads(l) for l in sys.stdin.read().splitlines()]))";
    const read = spawnSync("python3", ["-c", script], {
      input: text,
      encoding: "utf8",
      env: { ...process.env, PYTHONUTF8: "1" },
    });
    expect([read.stderr, read.stdout.trim()]).toEqual(["", String(prompts.length)]);
  });

  it("has the purpose, name and expiry that the batch defines", async () => {
    const expiring = await runBatch(run, [chatLine("a", "hi")], {
      output_expires_after: { anchor: "created_at", seconds: 3_600 },
    });
    const file = await run.openai.files.retrieve(expiring.output_file_id ?? "");
    expect(file).toMatchObject({
      purpose: "batch_output",
      filename: `${expiring.id}_output.jsonl`,
      status: "processed",
    });
    expect((file.expires_at ?? 0) - file.created_at).toBe(3_600);
    const lasting = await runBatch(run, [chatLine("a", "{{status/400}}", "up-1")]);
    expect(await run.openai.files.retrieve(lasting.error_file_id ?? "")).toMatchObject({ expires_at: null });
  });

  it("is complete if the batch has many groups of lines and the file several parts", { tags: ["slow"] }, async () => {
    const long = "x".repeat(300_000);
    const lines = Array.from({ length: 300 }, (_, at) => chatLine(`c${at}`, at % 12 === 0 ? long : `hi ${at}`));
    const batch = await runBatch(run, lines);
    const { output } = await resultsOf(run, batch);
    expect(batch.request_counts).toEqual({ total: 300, completed: 300, failed: 0 });
    for (const [at, id] of lines.map((_, at) => [at, `c${at}`] as const)) {
      expect(completionOf(output.get(id)).text).toBe(at % 12 === 0 ? long : `hi ${at}`);
    }
  });
});

describe("the input of a batch", () => {
  it("may be deleted while the batch reads it", { tags: ["slow"] }, async () => {
    const lines = Array.from({ length: 1_500 }, (_, at) => chatLine(`c${at}`, `{{delay/5}} ${at}`, "up-1"));
    const { openai, ...own } = await place.openRun({ max_parallel: 32 });
    const created = await createBatch({ openai, ...own }, lines);
    const status = () => openai.batches.retrieve(created.id).then((batch) => batch.status);
    await expect.poll(status, { interval: 20 }).toBe("in_progress");
    await openai.files.delete(created.input_file_id);
    await expect(openai.files.retrieve(created.input_file_id)).rejects.toMatchObject({ status: 404 });
    // Only so many lines are open at once: of the last ones nothing had been read yet.
    const batch = await endOf({ openai, ...own }, created);
    expect(batch).toMatchObject({ status: "completed", request_counts: { total: 1_500, completed: 1_500 } });
  });

  it("may have CRLF line ends, a byte order mark and blank lines", async () => {
    const text = `\uFEFF${JSON.stringify(chatLine("a", "hi"))}\r\n\r\n${JSON.stringify(chatLine("b", "ho"))}`;
    const batch = await runBatch(run, [text]);
    expect(batch).toMatchObject({ status: "completed", request_counts: { total: 2, completed: 2, failed: 0 } });
  });
});

describe("a running batch", () => {
  it("reports how many lines have ended before any of them is in a file", { tags: ["slow"] }, async () => {
    const own = await place.openRun({ max_parallel: 8 });
    const lines = Array.from({ length: 100 }, (_, at) => chatLine(`c${at}`, `{{delay/100}} ${at}`, "up-1"));
    const { id } = await createBatch(own, lines);
    const completed: number[] = [];
    for (let status = "validating"; status !== "completed";) {
      const batch = await own.openai.batches.retrieve(id);
      status = batch.status;
      completed.push(batch.request_counts?.completed ?? -1);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    expect(completed.at(-1)).toBe(100);
    expect(completed).toEqual(completed.toSorted((a, b) => a - b));
    expect(completed.some((count) => count > 0 && count < 100)).toBe(true);
  });

  it("gives single calls of the same run priority over its lines", { tags: ["slow"] }, async () => {
    const own = await place.openRun({ max_parallel: 4 });
    const lines = Array.from({ length: 300 }, (_, at) => chatLine(`c${at}`, `{{delay/200}} ${at}`, "up-1"));
    const { id } = await createBatch(own, lines);
    const completed = async () => (await own.openai.batches.retrieve(id)).request_counts?.completed ?? 0;
    await expect.poll(completed).toBeGreaterThan(0);
    for (const prompt of ["first", "second", "third"]) {
      const { text } = replyOf(await own.send("/query", { json: { prompt, model: "up-1" } }));
      expect(text).toBe(prompt);
    }
    // Lines wait still, and most of them: the calls have not waited for the lines that were there before them.
    expect(await completed()).toBeLessThan(lines.length / 2);
    await own.openai.batches.cancel(id);
  });

  it("continues with other lines while a slow line runs", { tags: ["slow"] }, async () => {
    const own = await place.openRun({ max_parallel: 64 });
    let goOn = (): void => undefined;
    const held = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    holding = held;
    // One of every 250 lines takes long: more groups have such a line than are open while none has.
    const lines = Array.from({ length: 1_500 }, (_, at) =>
      chatLine(`c${at}`, at % 250 === 0 ? `long ${at}` : `hi ${at}`, "up-1"),
    );
    const created = await createBatch(own, lines);
    const completed = async () => (await own.openai.batches.retrieve(created.id)).request_counts?.completed ?? 0;
    await expect.poll(completed).toBe(1_494);
    goOn();
    expect((await endOf(own, created)).request_counts).toEqual({ total: 1_500, completed: 1_500, failed: 0 });
  });
});
