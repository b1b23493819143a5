/** The same grammar as lines of batch files: a gateway with R2 before the same mock. */
import { z } from "zod";
import { startR2Gateway } from "../../test/support/r2-gateway.ts";
import type { Gateway } from "../../test/support/gateway.ts";
import { documentOf, overrunsOf, RUN_NUMBERS, settled, type StormPlan, type StormResult } from "./storm.ts";
import type { Look } from "./budget.ts";
import { drawLine, type Scene } from "./grammar.ts";
import { write } from "./json-text.ts";
import { Random } from "./random.ts";
import type { Family } from "./bill.ts";
import type { StartGateway } from "./world.ts";

export const startBatchGateway: StartGateway = startR2Gateway;

const ENDPOINTS: Partial<Record<Family, string>> = {
  chat: "/v1/chat/completions",
  completions: "/v1/completions",
  responses: "/v1/responses",
  embeddings: "/v1/embeddings",
};
/** Longest that a batch may take, ms. What its upstream turns away is tried again for long. */
const BATCH_MS = 60_000;

const withId = z.object({ id: z.string() });
const batchDocument = z.object({ status: z.string() });

/** One batch of `plan.requests` lines in a run of its own. */
export async function batchStorm(gateway: Gateway, plan: StormPlan): Promise<StormResult> {
  const random = new Random(plan.seed, plan.run, 3);
  const number = plan.run * RUN_NUMBERS;
  const run = await gateway.openRun({ budget: plan.limits, max_parallel: 0 });
  const family = random.pick(["chat", "chat", "completions", "responses", "embeddings"] as const);
  let marks = 0;
  const lines = Array.from({ length: plan.requests }, (_, at) => {
    const scene: Scene = {
      ...{ personality: plan.personality, run: number, random, malice: plan.malice, foreign: plan.foreign ?? 0 },
      ...{ mood: plan.moodAt(at / plan.requests), next: () => (marks += 1) },
    };
    const body = write(drawLine(scene, family));
    return `{"custom_id":"line-${at}","method":"POST","url":"${ENDPOINTS[family] ?? ""}","body":${body}}\n`;
  });
  const status = await runBatch(gateway, run.token, lines.join(""), ENDPOINTS[family] ?? "");
  const final = await settled(gateway, run.id);
  return {
    plan,
    runs: [{ number, token: run.token, id: run.id, final, over: overOf((await documentOf(gateway, run.id)).look) }],
    calls: plan.requests,
    statuses: new Map([[status, 1]]),
    overruns: await overrunsOf(gateway, [run.id]),
    sent: [],
  };
}

function overOf(look: Look): string[] {
  return Object.entries(look)
    .filter(([, { limit, spent, reserved }]) => limit !== null && spent + reserved > limit)
    .map(([name, { limit, spent, reserved }]) => `${name}: ${spent} spent and ${reserved} reserved of ${limit}`);
}

/** 200 for a batch that was created and has ended; otherwise the status of the refusal. */
async function runBatch(gateway: Gateway, token: string, text: string, endpoint: string): Promise<number> {
  const form = new FormData();
  form.set("purpose", "batch");
  form.set("file", new Blob([text]), "lines.jsonl");
  const uploaded = await gateway.fetch("/v1/files", { token, method: "POST", body: form });
  if (!uploaded.ok) return uploaded.status;
  const file = withId.parse(await uploaded.json());
  const json = { input_file_id: file.id, endpoint, completion_window: "24h" };
  const created = await gateway.fetch("/v1/batches", { token, json });
  if (!created.ok) return created.status;
  const batch = withId.parse(await created.json());
  const startedMs = performance.now();
  for (;;) {
    const { status } = batchDocument.parse(await (await gateway.fetch(`/v1/batches/${batch.id}`, { token })).json());
    if (["completed", "failed", "expired", "cancelled"].includes(status)) return status === "completed" ? 200 : 400;
    if (performance.now() - startedMs > BATCH_MS) {
      // What still waits is withdrawn; what was sent is settled.
      await gateway.fetch(`/v1/batches/${batch.id}/cancel`, { token, method: "POST" });
      return 202;
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
