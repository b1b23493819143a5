/** What the clients of the soak do: a program for each way in, which throws unless every answer is right. */
import { z } from "zod";
import { openRun, send } from "../../test/support/gateway.ts";

export type Place = { url: string; adminKey: string };
/** Runs once. All its prompts begin with `name`, which no other program has. */
type Program = (place: Place, name: string) => Promise<void>;

const SLOTS = 120;
const failure = z.looseObject({ error: z.looseObject({ code: z.string() }) });
const ITEM = z.looseObject({ text: z.string().nullable(), error: z.unknown() });
const batchAnswer = z.looseObject({ results: z.array(z.string()), errors: z.array(z.unknown()) });
const usage = z.looseObject({
  budget: z.looseObject({ usd: z.looseObject({ limit: z.number(), spent: z.number(), reserved: z.number() }) }),
});

export const PROGRAMS: readonly (readonly [string, Program])[] = [
  ["queries", queries],
  ["batch", batch],
  ["lines, client leaves", linesThatNobodyReads],
  ["group without a client", group],
  ["streams", streams],
  ["graph", graph],
  ["context", context],
  ["children", children],
  ["broken requests", broken],
];

async function open(place: Place, settings: Record<string, unknown> = {}) {
  const run = await openRun(place.url, place.adminKey, { max_parallel: 32, budget: { usd: 10 }, ...settings });
  const ask = (path: string, request: Parameters<typeof send>[1] = {}) =>
    send(place.url + path, { token: run.token, ...request });
  return { id: run.id, token: run.token, ask, end: () => endOf(place, run.id) };
}
type Run = Awaited<ReturnType<typeof open>>;

/** Opens a run, reads it with its token and deletes it. */
export async function useRun(place: Place): Promise<void> {
  const run = await open(place);
  await json(await run.ask("/run"), 200);
  await run.end();
}

/** Everything that the run reserved is settled, within its limit; then the operator deletes it. */
async function endOf(place: Place, id: string): Promise<void> {
  const until = performance.now() + 60_000;
  for (;;) {
    const { usd } = usage.parse(
      await json(await send(`${place.url}/runs/${id}`, { token: place.adminKey }), 200),
    ).budget;
    if (usd.spent + usd.reserved > usd.limit)
      throw new Error(`spent ${usd.spent} and reserved ${usd.reserved} of ${usd.limit}`);
    if (usd.reserved === 0) break;
    if (performance.now() > until) throw new Error(`a minute after the end ${usd.reserved} USD are reserved`);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  const deleted = await send(`${place.url}/runs/${id}`, { method: "DELETE", token: place.adminKey });
  await deleted.arrayBuffer();
  if (deleted.status >= 300) throw new Error(`DELETE /runs/${id} answered ${deleted.status}`);
}

async function json(response: Response, status: number): Promise<unknown> {
  const text = await response.text();
  if (response.status !== status) throw new Error(`${response.url} answered ${response.status}: ${text.slice(0, 300)}`);
  return JSON.parse(text);
}

const promptsOf = (name: string, count: number = SLOTS) =>
  Array.from({ length: count }, (_, at) => `${name} slot ${at}`);

/** A slot has its own answer, or an error; a few fail, for the provider is overloaded three times in a row. */
function checkSlots(prompts: readonly string[], results: readonly string[], errors: readonly unknown[]): void {
  if (results.length !== prompts.length) throw new Error(`${results.length} results for ${prompts.length} prompts`);
  for (const [at, prompt] of prompts.entries()) {
    if (errors[at] === null ? results[at] !== prompt : errors[at] === undefined) {
      throw new Error(`slot ${at} has ${JSON.stringify([results[at], errors[at]])}`);
    }
  }
}

async function queries(place: Place, name: string): Promise<void> {
  const run = await open(place);
  await Promise.all(
    promptsOf(name, 40).map(async (prompt) => {
      const response = await run.ask("/query", { json: { prompt } });
      const answer: unknown = await response.json();
      if (response.status === 200 ? ITEM.partial().parse(answer).text !== prompt : !failure.safeParse(answer).success) {
        throw new Error(`/query answered ${response.status}: ${JSON.stringify(answer)}`);
      }
    }),
  );
  await run.end();
}

async function batch(place: Place, name: string): Promise<void> {
  const run = await open(place);
  const prompts = promptsOf(name);
  const { results, errors } = batchAnswer.parse(await json(await run.ask("/batch", { json: { prompts } }), 200));
  checkSlots(prompts, results, errors);
  await run.end();
}

async function linesThatNobodyReads(place: Place, name: string): Promise<void> {
  const run = await open(place);
  const leaving = new AbortController();
  const headers = { accept: "application/x-ndjson" };
  const response = await run.ask("/batch", {
    json: { prompts: promptsOf(name), detach: false },
    headers,
    signal: leaving.signal,
  });
  await response.body?.getReader().read();
  leaving.abort();
  await run.end();
}

async function group(place: Place, name: string): Promise<void> {
  const run = await open(place);
  const prompts = promptsOf(name);
  const headers = { prefer: "respond-async" };
  const opened = await json(await run.ask("/batch", { json: { prompts }, headers }), 202);
  const { id } = z.looseObject({ id: z.string() }).parse(opened);
  const answer = await json(await run.ask(`/groups/${id}?wait_ms=60000`), 200);
  const { results, errors } = batchAnswer.parse(answer);
  checkSlots(prompts, results, errors);
  await run.end();
}

async function streams(place: Place, name: string): Promise<void> {
  const run = await open(place);
  const ask = (prompt: string, signal: AbortSignal | null = null) =>
    run.ask("/v1/chat/completions", {
      json: { model: "sim/echo", stream: true, messages: [{ role: "user", content: prompt }] },
      signal,
    });
  await Promise.all(
    promptsOf(name, 20).map(async (prompt, at) => {
      const leaving = new AbortController();
      const response = await ask(prompt, at % 4 === 0 ? leaving.signal : null);
      if (at % 4 === 0) {
        await response.body?.getReader().read();
        leaving.abort();
      } else {
        const text = await response.text();
        if (response.status === 200 && !text.includes("[DONE]"))
          throw new Error(`a stream ended with ${text.slice(-200)}`);
      }
    }),
  );
  await run.end();
}

async function graph(place: Place, name: string): Promise<void> {
  const run = await open(place);
  const leaves = promptsOf(name, 30);
  const tasks = leaves.map((prompt, at) => ({ id: `leaf${at}`, prompt }));
  const sum = { id: "sum", prompt: `${name} sum of {{leaf0.output}}`, dependencies: tasks.map(({ id }) => id) };
  const answer = await json(await run.ask("/dag", { json: { tasks: [...tasks, sum] } }), 200);
  const done = z.looseObject({
    tasks: z.record(z.string(), z.looseObject({ output: z.unknown(), error: z.unknown() })),
  });
  const ends = done.parse(answer).tasks;
  const ended = leaves.map((_, at) => ends[`leaf${at}`]);
  checkSlots(
    leaves,
    ended.map((end) => String(end?.output)),
    ended.map((end) => end?.error),
  );
  await run.end();
}

async function context(place: Place, name: string): Promise<void> {
  const run = await open(place);
  const text = Array.from({ length: 60 }, (_, at) => `Paragraph ${at} of ${name}.\n\n`).join("");
  const { id } = z
    .looseObject({ id: z.string() })
    .parse(await json(await run.ask("/contexts", { json: { text } }), 201));
  const over = { context: id, split: { by: "paragraphs", size: 80 } };
  const answer = await json(await run.ask("/batch", { json: { over, prompt: "Read: {{chunk}}" } }), 200);
  const { results, errors } = batchAnswer.parse(answer);
  const asked = results.filter((_, at) => errors[at] === null);
  if (asked.some((result) => !result.startsWith("Read: Paragraph")))
    throw new Error("a chunk has the answer of another");
  await run.end();
}

async function children(place: Place, name: string): Promise<void> {
  const parent = await open(place);
  await Promise.all(
    [0, 1, 2].map(async (at) => {
      const asked = { budget: { usd: 1 }, max_parallel: 4 };
      const child = z
        .looseObject({ token: z.string() })
        .parse(await json(await send(`${place.url}/runs`, { token: parent.token, json: asked }), 201));
      const prompts = promptsOf(`${name} child ${at}`, 20);
      const answer = await json(await send(`${place.url}/batch`, { token: child.token, json: { prompts } }), 200);
      const { results, errors } = batchAnswer.parse(answer);
      checkSlots(prompts, results, errors);
    }),
  );
  await parent.ask("/runs/self", { method: "DELETE" }).then((response) => response.arrayBuffer());
}

/** Requests that must be refused. */
async function broken(place: Place, name: string): Promise<void> {
  const run: Run = await open(place);
  for (const [path, body] of [
    ["/batch", `{"prompts": [${"[".repeat(2_000)}`],
    ["/query", `{"prompt": ${"9".repeat(500)}}`],
    ["/dag", JSON.stringify({ tasks: [{ id: "a", prompt: "{{b.output}}" }] })],
    ["/query", JSON.stringify({ prompt: name, max_tokens: -1 })],
  ] as const) {
    const headers = { "content-type": "application/json" };
    const response = await run.ask(path, { method: "POST", body, headers });
    failure.parse(await response.json());
    if (response.status < 400 || response.status >= 500) throw new Error(`${path} answered ${response.status}`);
  }
  await run.end();
}
