/**
 * Code mode: a model writes a program for a task, and this Worker runs it without network, without a token, and with one binding: a
 * run of ten cents. What the model costs is paid from the same run.
 */

/** What one task may cost: the program, and all calls that it makes. */
const BUDGET_USD = 0.1;
/** Longest result, characters: the program decides what it returns. */
const RESULT_CHARS_MAX = 1_000_000;
/** What a program may take of the machine. Cloudflare enforces it; `wrangler dev` does not, where `for (;;);` ends nothing but the server. */
const LIMITS = { cpuMs: 10_000, subRequests: 1_000 };

const INSTRUCTIONS = `Write a JavaScript module for the task below. Answer with one block of code.
It exports "async function main(llm)" and returns what the task asks for, as JSON. It has no network.
- await llm.batch({ prompts: [...] }) asks a model many questions at once: { results: [...] } in their order.
- await llm.query({ prompt }) asks one: { text }.
- await llm.budget() says what is left.

\`\`\`js
export async function main(llm) {
  const fruits = ["red", "green", "blue"].map((colour) => "Name a fruit that is " + colour);
  return (await llm.batch({ prompts: fruits })).results;
}
\`\`\`

Task: `;

/** What is called of a program. It returns a text, so that this Worker reads no other value that the program has made. */
const ENTRY = `import { WorkerEntrypoint } from "cloudflare:workers";
import { main } from "./program.js";
export default class extends WorkerEntrypoint {
  async run() {
    return JSON.stringify((await main(this.env.llm)) ?? null);
  }
}`;

export default {
  async fetch(request, env) {
    if (request.method !== "POST") return new Response("POST a task as text.\n", { status: 405 });
    const task = await request.text();
    using run = await env.FANOUT.openRun({ name: "code mode", budget: { usd: BUDGET_USD } });
    const ended = await endOf(task, run.binding, env);
    return Response.json({ run: run.id, ...ended, spent_usd: await spentAtClose(run.binding) });
  },
};

/** Has the model write the program and runs it: its result, or why there is none. */
async function endOf(task, llm, env) {
  try {
    const { text } = await llm.query({ prompt: INSTRUCTIONS + task });
    const worker = env.LOADER.load(workerOf(programIn(text), llm));
    const result = await inTime(worker.getEntrypoint().run(), env.PROGRAM_MS);
    if (typeof result !== "string" || result.length > RESULT_CHARS_MAX) throw new Error("the result is too long");
    return { result: JSON.parse(result) };
  } catch (error) {
    return { error: String(error?.message).slice(0, 1_000) };
  }
}

/** What a promise becomes within this time, or an error. */
async function inTime(promise, ms) {
  const { promise: late, reject } = Promise.withResolvers();
  const timer = setTimeout(() => reject(new Error("the program takes too long")), ms);
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** The last block of code in an answer; the whole answer if it has none. */
function programIn(text) {
  return [...text.matchAll(/^```\w*\n(.*?)^```/gms)].at(-1)?.[1] ?? text;
}

/** A program as a Worker that reaches `llm` and nothing else. */
function workerOf(program, llm) {
  return {
    compatibilityDate: "2026-11-01",
    mainModule: "entry.js",
    modules: { "entry.js": ENTRY, "program.js": program },
    env: { llm },
    globalOutbound: null,
    limits: LIMITS,
  };
}

/** Ends the run, so that what the program has left behind can start no call, and says what it has spent; null if the program has ended it. */
async function spentAtClose(llm) {
  try {
    const { budget } = await llm.close();
    return budget.usd.spent;
  } catch {
    return null;
  }
}
