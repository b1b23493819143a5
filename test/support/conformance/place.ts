/** A gateway to examine: with R2, a run, and one thing of each kind that a path can name. */
import { z } from "zod";
import { startR2Gateway } from "../r2-gateway.ts";
import type { Gateway, GatewayRequest } from "../gateway.ts";

/** What the hooks of schemathesis read: credentials, and the ids that exist below each path, or for one operation. */
export type Place = { url: string; operator: string; token: string; things: Record<string, readonly string[]> };

const withId = z.looseObject({ id: z.string() });

const SIMULATED = { kind: "simulated" };
const TAPE = "tape";

/** All calls that an examination may make, of a hundred examples per operation, too. */
const CALLS_MAX = 1_000_000;

/** Starts the gateway, and a run in which everything exists once. */
export async function startPlace(): Promise<{ gateway: Gateway; place: Place }> {
  const gateway = await startR2Gateway({
    vars: {
      UPSTREAMS: { sim: SIMULATED, taped: { kind: "cassette", mode: "record", tape: TAPE, upstream: SIMULATED } },
    },
  });
  // A limit of calls only, as a request that fits its schema is then refused for no field that has a price.
  const run = await gateway.openRun({ default_model: "sim/echo", budget: { calls: CALLS_MAX } });
  const send = async (path: string, request: GatewayRequest = {}): Promise<string> => {
    const answer = await gateway.fetch(path, { token: run.token, method: "POST", ...request });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${path} was answered ${answer.status}: ${text}`);
    return withId.parse(JSON.parse(text)).id;
  };
  const upload = async (): Promise<string> => {
    const form = new FormData();
    const line = {
      custom_id: "a",
      method: "POST",
      url: "/v1/chat/completions",
      body: { model: "sim/echo", messages: [] },
    };
    form.set("purpose", "batch");
    form.set("file", new Blob([`${JSON.stringify(line)}\n`]), "lines.jsonl");
    return await send("/v1/files", { body: form });
  };
  const ended = await send("/runs", { json: { budget: { calls: 1 } } });
  await gateway.fetch(`/runs/${ended}/close`, { method: "POST", token: run.token });
  const file = await upload();
  const graph = {
    tasks: [
      { id: "a", prompt: "one" },
      { id: "b", prompt: "{{a.output}}" },
    ],
  };
  const things = {
    "/groups": [await send("/batch", { json: { prompts: ["one", "two"] } })],
    "/dag": [await send("/dag", { json: graph })],
    "/runs": [run.id],
    // Its stream of events ends.
    "GET /runs/{id}/events": [ended],
    "/contexts": [await send("/contexts", { json: { text: "one two three" } })],
    "/v1/files": [file],
    "/v1/uploads": [
      await send("/v1/uploads", { json: { filename: "f", purpose: "user_data", bytes: 3, mime_type: "text/plain" } }),
    ],
    "/v1/batches": [
      await send("/v1/batches", {
        json: { input_file_id: file, endpoint: "/v1/chat/completions", completion_window: "24h" },
      }),
    ],
    "/v1/models": ["sim/echo"],
    "/rollout": [run.id],
    lang: ["python"],
    tape: [TAPE],
    index: ["0"],
  };
  return { gateway, place: { url: gateway.url, operator: gateway.adminKey, token: run.token, things } };
}
