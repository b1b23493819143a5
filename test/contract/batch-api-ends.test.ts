/** Batches that end before their lines: webhooks, access by other runs, and repeated requests. */
import OpenAI from "openai";
import type { Batch } from "openai/resources/batches";
import OpenAI6 from "openai-6";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startGateway } from "../support/gateway.ts";
import { startWebhookReceiver, type WebhookReceiver } from "../support/webhook-receiver.ts";
import {
  chatLine,
  createBatch,
  endOf,
  resultsOf,
  runBatch,
  startBatchPlace,
  uploadLines,
  type BatchPlace,
  type BatchRun,
} from "./batch-place.ts";
import { answerOf, documentOf, errorOf } from "./world.ts";

const SECRET = `whsec_${Buffer.from("a secret of the operator").toString("base64")}`;

let place: BatchPlace;
let listener: WebhookReceiver;
/** Batches that end before all tests here: their second delivery, five seconds after the first, has then arrived before the last test. */
const ended: { completed?: Batch; failed?: Batch } = {};
beforeAll(async () => {
  // It refuses the first delivery of each.
  listener = await startWebhookReceiver((tries) => (tries === 1 ? 500 : 200));
  place = await startBatchPlace(undefined, { vars: { WEBHOOK_URL: listener.url, WEBHOOK_SECRET: SECRET } });
  const run = await place.openRun();
  ended.completed = await runBatch(run, [chatLine("a", "hi")]);
  ended.failed = await runBatch(run, ["{}"]);
});
afterAll(async () => {
  await place.stop();
  await listener.stop();
});

const slow = (count: number, delayMs = 100) =>
  Array.from({ length: count }, (_, at) => chatLine(`c${at}`, `{{delay/${delayMs}}} ${at}`, "up-1"));
const hasBegun = (run: BatchRun, id: string, lines: number) => async () => {
  const { request_counts } = await run.openai.batches.retrieve(id);
  return (request_counts?.completed ?? 0) >= lines;
};

describe("a cancelled batch", () => {
  it(
    "keeps its finished lines, reports every other line as not run, and spends nothing more",
    { tags: ["slow"] },
    async () => {
      const run = await place.openRun({ max_parallel: 16 });
      const { id } = await createBatch(run, slow(1_500));
      await expect.poll(hasBegun(run, id, 20)).toBe(true);
      const cancelling = await run.openai.batches.cancel(id);
      expect(cancelling.status).toMatch(/^cancell(ing|ed)$/);
      expect(cancelling.cancelling_at).toBeGreaterThanOrEqual(cancelling.created_at);
      expect((await run.openai.batches.cancel(id)).cancelling_at).toBe(cancelling.cancelling_at);
      const batch = await endOf(run, { id });
      const sent = place.upstream.counters.requests;
      expect(batch.status).toBe("cancelled");
      expect(batch.cancelled_at).toBeGreaterThanOrEqual(cancelling.cancelling_at ?? Infinity);
      expect(await run.openai.batches.cancel(id)).toEqual(batch);
      const { output, error } = await resultsOf(run, batch);
      expect(output.size).toBeGreaterThanOrEqual(20);
      expect(output.size + error.size).toBe(1_500);
      for (const line of error.values())
        expect(line).toMatchObject({ response: null, error: { code: "batch_cancelled" } });
      expect(batch.request_counts).toEqual({ total: 1_500, completed: output.size, failed: 0 });
      const { budget } = await documentOf(run);
      expect([budget.calls.reserved, budget.usd.reserved]).toEqual([0, 0]);
      expect(place.upstream.counters.requests).toBe(sent);
    },
  );

  it("has no result files if it was still validating", async () => {
    const run = await place.openRun();
    const created = await createBatch(run, slow(1_000));
    await run.openai.batches.cancel(created.id);
    const batch = await endOf(run, created);
    expect(batch.status).toBe("cancelled");
    const { output, error } = await resultsOf(run, batch);
    expect(output.size + error.size).toBe(batch.request_counts?.total);
  });

  it("cannot be cancelled after another end; the refusal is not retryable", async () => {
    const run = await place.openRun();
    const completed = await runBatch(run, [chatLine("a", "hi")]);
    const answer = await run.send(`/v1/batches/${completed.id}/cancel`, { method: "POST" });
    expect([answer.status, answer.headers.get("x-should-retry")]).toEqual([409, "false"]);
    expect(answer.json).toMatchObject({
      error: {
        message: "Cannot cancel a batch with status 'completed'.",
        type: "invalid_request_error",
        param: null,
        code: "conflict",
      },
    });
    const failed = await runBatch(run, ["{}"]);
    await expect(run.openai.batches.cancel(failed.id)).rejects.toMatchObject({ status: 409 });
  });
});

describe("a run that has ended", () => {
  it("ends its batch, keeps its files deletable, and accepts no new files", { tags: ["slow"] }, async () => {
    const run = await place.openRun({ max_parallel: 16 });
    const { id, input_file_id } = await createBatch(run, slow(1_500));
    await expect.poll(hasBegun(run, id, 20)).toBe(true);
    expect((await run.send(`/runs/${run.id}`, { method: "DELETE" })).status).toBe(200);
    const batch = await endOf(run, { id });
    expect(batch.status).toBe("cancelled");
    const { output, error } = await resultsOf(run, batch);
    expect(output.size + error.size).toBe(1_500);
    await expect(uploadLines(run, [chatLine("a", "hi")])).rejects.toMatchObject({ status: 401 });
    const upload = { purpose: "batch", filename: "x", bytes: 1, mime_type: "text/plain" };
    expect((await run.send("/v1/uploads", { json: upload })).status).toBe(401);
    const again = { input_file_id, endpoint: "/v1/chat/completions", completion_window: "24h" };
    expect((await run.send("/v1/batches", { json: again })).status).toBe(401);
    expect(await run.openai.files.delete(input_file_id)).toMatchObject({ deleted: true });
  });
});

describe("the token of another run", () => {
  it("sees no file and no batch of this one", async () => {
    const run = await place.openRun();
    const batch = await runBatch(run, [chatLine("a", "hi")]);
    const { openai, send } = await place.openRun();
    expect((await openai.batches.list()).data).toEqual([]);
    expect((await openai.files.list()).data).toEqual([]);
    const file = batch.output_file_id ?? "";
    const asked = [
      openai.batches.retrieve(batch.id),
      openai.batches.cancel(batch.id),
      openai.files.retrieve(file),
      openai.files.content(file),
      openai.files.delete(file),
    ];
    await Promise.all(asked.map((answer) => expect(answer).rejects.toMatchObject({ status: 404 })));
    expect((await send(`/v1/batches/${batch.id}`)).json).toMatchObject({
      error: { message: `No batch found with id '${batch.id}'.` },
    });
    const operator = { headers: { "x-fanout-run": run.id } };
    expect((await place.sendAsOperator(`/v1/batches/${batch.id}`, operator)).json).toEqual(batch);
    expect((await place.sendAsOperator(`/v1/files/${file}/content`, operator)).status).toBe(200);
    expect((await place.gateway().fetch(`/v1/files/${file}/content`)).status).toBe(401);
  });
});

describe("an Idempotency-Key", () => {
  it("creates one batch, however often and fast it is sent, and is refused for another request", async () => {
    const run = await place.openRun();
    const input_file_id = await uploadLines(run, [chatLine("a", "hi")]);
    const json = { input_file_id, endpoint: "/v1/chat/completions", completion_window: "24h" };
    const post = (body: object) => run.send("/v1/batches", { json: body, headers: { "idempotency-key": "nightly" } });
    const answers = await Promise.all(Array.from({ length: 4 }, () => post(json)));
    const ids = answers.map(({ json: batch }) =>
      typeof batch === "object" && batch !== null && "id" in batch ? batch.id : null,
    );
    expect(new Set(ids).size).toBe(1);
    expect((await run.openai.batches.list()).data.map(({ id }) => id)).toEqual(ids.slice(0, 1));
    const replayed = answers.filter(({ headers }) => headers.get("idempotent-replayed") === "true");
    expect(replayed).toHaveLength(answers.length - 1);
    const other = await post({ ...json, metadata: { other: "yes" } });
    expect([other.status, errorOf(other).code]).toEqual([409, "idempotency_conflict"]);
    const foreign = await place.openRun();
    const elsewhere = await foreign.send("/v1/batches", { json, headers: { "idempotency-key": "nightly" } });
    expect(elsewhere.json).not.toMatchObject({ id: ids[0] });
  });
});

describe("the operator's webhook", () => {
  it(
    "gets each end in a form that OpenAI's clients accept, and a retry with the same id if it does not respond",
    { tags: ["slow"] },
    async () => {
      const { completed, failed } = ended;
      const of = (batch: Batch | undefined) =>
        listener.deliveries.filter(({ body }) => body.includes(batch?.id ?? "none"));
      await expect.poll(() => [of(completed).length, of(failed).length]).toEqual([2, 2]);
      const clients = [new OpenAI({ apiKey: "none" }), new OpenAI6({ apiKey: "none" })];
      for (const [batch, type] of [
        [completed, "batch.completed"],
        [failed, "batch.failed"],
      ] as const) {
        const [first, second] = of(batch);
        expect(second?.headers["webhook-id"]).toBe(first?.headers["webhook-id"]);
        for (const { body, headers } of of(batch)) {
          for (const { webhooks } of clients) {
            expect(await webhooks.unwrap(body, headers, SECRET)).toMatchObject({
              object: "event",
              type,
              data: { id: batch?.id },
            });
            await expect(webhooks.unwrap(`${body} `, headers, SECRET)).rejects.toThrow();
          }
        }
      }
    },
  );
});

describe("a gateway without R2", () => {
  it("names the missing binding", async () => {
    const gateway = await startGateway();
    const { token } = await gateway.openRun();
    const form = new FormData();
    form.set("purpose", "batch");
    form.set("file", new File(["{}"], "x.jsonl"));
    const asked = [
      gateway.fetch("/v1/files", { method: "POST", body: form, token }),
      gateway.fetch("/v1/files", { token }),
      gateway.fetch("/v1/uploads", { json: {}, token }),
      gateway.fetch("/v1/batches", { json: {}, token }),
    ];
    for (const answer of asked) {
      const { code, message } = errorOf(await answerOf(await answer));
      expect([code, message]).toEqual(["misconfigured", expect.stringContaining("FILES")]);
    }
    await gateway.stop();
  });
});
