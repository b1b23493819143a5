/** The ways in whose costs are counted, each as a client uses it. */
import { expect } from "vitest";
import { z } from "zod";
import { MANY_CALLS } from "../../support/busy-machine.ts";
import { openAsync, lookAt } from "../../support/objects-group.ts";
import { ADMIN_KEY } from "../../support/object-vars.ts";
import { exports } from "cloudflare:workers";
import { prompts, upstreamStats, type TestRun } from "../../support/objects-run.ts";
import type { Start } from "./measure.ts";

/** One model for all: what a run learns of a model, it stores once. */
const model = "up/counted";

/** A prompt that waits at the latch `key`, as a model generates: a stream's headers come at once. */
const promptOf = (key: string, question = "question"): string => `${question} {{early/1/key/${key}/latch/${key}}}`;

const promptsOf = (key: string, calls: number): string[] => prompts(calls).map((prompt) => promptOf(key, prompt));

/** Reads an answer to its end. Throws unless it is a success. */
async function whole(answer: Response | Promise<Response>): Promise<string> {
  const response = await answer;
  const text = await response.text();
  if (!response.ok) throw new Error(`${response.status}: ${text}`);
  return text;
}

/** Waits until the upstream has answered all calls of a key, which the test lets end one after another. */
async function untilAnswered(key: string, calls: number): Promise<void> {
  const answered = async (): Promise<number> => {
    const { requests, inFlight } = await upstreamStats(key);
    return requests - inFlight;
  };
  await expect.poll(answered, MANY_CALLS).toBe(calls);
}

export const batchJson: Start = (run, key, calls) => run.batch({ prompts: promptsOf(key, calls), model });

/** An upstream that does not stream: its headers come with its answer. */
export const batchUnstreamed: Start = (run, key, calls) =>
  run.batch({
    prompts: prompts(calls).map((prompt) => `${prompt} {{key/${key}/latch/${key}}}`),
    model: "plain/counted",
  });

export const batchLines: Start = (run, key, calls) =>
  whole(run.post("/batch", { prompts: promptsOf(key, calls), model }, { accept: "application/x-ndjson" }));

/** Opens a group and leaves; looks at it once it has ended. */
export const asyncGroup: Start = async (run, key, calls) => {
  const id = await openAsync(run, { prompts: promptsOf(key, calls), model });
  await untilAnswered(key, calls);
  expect((await lookAt(run, id)).status).toBe("completed");
};

export const query: Start = (run, key) => run.query({ prompt: promptOf(key), model });

export const storedQuery: Start = (run, key) =>
  whole(run.post("/query", { prompt: promptOf(key), model }, { headers: { "idempotency-key": crypto.randomUUID() } }));

/** A call that its run has an answer of, made in another life of the client's program. */
export const replayedQuery = (run: TestRun, epoch: string, key?: string): Promise<string> => {
  const named = key === undefined ? {} : { "idempotency-key": key };
  const headers = { "x-fanout-epoch": epoch, ...named };
  return whole(run.post("/query", { prompt: "question", model: "sim/echo" }, { headers }));
};

const chatOf = (key: string) => ({ model, messages: [{ role: "user", content: promptOf(key) }] });

export const chat: Start = (run, key) => whole(run.post("/v1/chat/completions", chatOf(key)));

export const streamedChat: Start = (run, key) =>
  whole(run.post("/v1/chat/completions", { ...chatOf(key), stream: true }));

export const toolCall: Start = (run) => whole(run.post("/tool_call", { tool_name: "t", input: {} }));

const named = z.looseObject({ id: z.string() });
const batchDocument = z.looseObject({ status: z.string() });

/** Uploads a file of lines, creates a batch of it, and waits without a request until it has ended. */
export const batchApi: Start = async (run, key, calls) => {
  const lines = promptsOf(key, calls).map((content, at) =>
    JSON.stringify({
      custom_id: `c${at}`,
      method: "POST",
      url: "/v1/chat/completions",
      body: { model, messages: [{ role: "user", content }] },
    }),
  );
  const form = new FormData();
  form.set("purpose", "batch");
  form.set("file", new File([lines.join("\n")], "x.jsonl"));
  const headers = { authorization: `Bearer ${ADMIN_KEY}`, "x-fanout-run": run.id };
  const uploaded = await whole(
    exports.default.fetch("http://fanout.test/v1/files", { method: "POST", headers, body: form }),
  );
  const request = {
    input_file_id: named.parse(JSON.parse(uploaded)).id,
    endpoint: "/v1/chat/completions",
    completion_window: "24h",
  };
  const { id } = named.parse(JSON.parse(await whole(run.post("/v1/batches", request))));
  await untilAnswered(key, calls);
  await expect
    .poll(async () => batchDocument.parse(JSON.parse(await whole(run.send("GET", `/v1/batches/${id}`)))).status)
    .toBe("completed");
};
