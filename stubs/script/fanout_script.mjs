/**
 * Workflow scripts on a fanout gateway: Node 20, Deno, Bun. One file, no imports.
 *
 *     import { agent, parallel, pipeline, phase, log, budget, workflow, failures } from "./fanout_script.mjs";
 *     const bugs = await agent("List the bugs in …", { schema: BUGS, label: "find" });
 *     const checked = await parallel(bugs.list.map((bug) => () => agent(`Is this a bug? ${bug}`)));
 *
 * `npx fanout run script.mjs --budget 2.00` runs a script that uses these functions without importing them, in a run of
 * its own: nothing that it does can spend more.
 *
 * agent(prompt, { schema, model, label, phase, … })  one call; its text, or with a schema the value that fits it
 * parallel(thunks)            their results in order, null for one that fails; all of them start at once
 * pipeline(items, ...stages)  each item through all stages by itself: stage(value, item, index); null ends an item
 * phase(name), log(text)      name what follows, and report; both are in the run's log
 * budget                      total, spent(), remaining(), in US dollars; null = no limit
 * workflow(file, args)        the result of another script's default function
 * failures                    calls that failed: { label, phase, code, message }
 *
 * A call that fails for a reason of the infrastructure is null and an entry in `failures`; it is never an answer. One
 * that the budget does not cover throws, which ends a script that does not catch it.
 *
 * Environment variables: FANOUT_URL and FANOUT_TOKEN; or call configure({ url, token, model, onEvent }).
 */

const URL_DEFAULT = "http://127.0.0.1:8787";

/** The waits before a request whose connection was lost is repeated, under its key: it is paid once. */
const RETRY_WAITS_MS = [250, 500, 1_000, 2_000];

/** What configure() has set. `onEvent` gets `{ type, … }` of agents, phases and logs. */
const settings = { url: null, token: null, model: null, onEvent: null };

const state = { phase: null, totalUsd: undefined, remainingUsd: null, spentUsd: 0, connecting: null };

/** Calls in flight, and whether some of them have overlapped: then the figure of an answer lacks what others held. */
const flight = { calls: 0, overlapped: false };

export const failures = [];

/** A call that the budget does not cover. */
export class BudgetError extends Error {
  constructor(message) {
    super(message);
    this.name = "BudgetError";
  }
}

/** Sets `url`, `token`, `model` and `onEvent`, or some of them. */
export function configure(changes) {
  Object.assign(settings, changes);
}

/** The budget of the run: exact while no call is in flight, else as of the last answer. */
export const budget = {
  get total() {
    return state.totalUsd ?? null;
  },
  /** What the calls of this script have cost. */
  spent: () => state.spentUsd,
  remaining: () => state.remainingUsd,
};

/** Makes one call. `retryable` and all other options are the fields of POST /query. */
export async function agent(prompt, { label = null, phase: own, ...fields } = {}) {
  await connected();
  const about = { label: label ?? String(prompt).slice(0, 60), phase: own ?? state.phase };
  const startedAtMs = Date.now();
  emit({ type: "agent_started", ...about });
  const body = { ...(settings.model ? { model: settings.model } : {}), ...fields, prompt: String(prompt) };
  const answer = await counted(() => send("/query", body));
  const costUsd = answer.usage?.cost ?? answer.error?.charged_usd ?? 0;
  state.spentUsd += costUsd;
  const ended = { ...about, costUsd, durationMs: Date.now() - startedAtMs, replayed: answer.replayed === true };
  if (answer.error === undefined) {
    emit({ type: "agent_ended", ...ended, ok: true });
    return fields.schema === undefined ? answer.text : (answer.json ?? JSON.parse(answer.text));
  }
  const { code = "bad_answer", message = "the gateway gave no reason" } = answer.error;
  emit({ type: "agent_ended", ...ended, ok: false, code });
  failures.push({ ...about, code, message });
  if (code === "budget_exhausted" || code === "infeasible") throw new BudgetError(message);
  return null;
}

/** Sends a call, and reads what is left of the budget when it was the last in flight. */
async function counted(sending) {
  flight.calls += 1;
  flight.overlapped ||= flight.calls > 1;
  let left = Number.NaN;
  try {
    const { answer, headers } = await sending();
    left = Number(headers?.get("x-fanout-budget-remaining-usd") ?? Number.NaN);
    return answer;
  } finally {
    flight.calls -= 1;
    if (Number.isFinite(left)) state.remainingUsd = left;
    if (flight.calls === 0 && flight.overlapped) {
      flight.overlapped = false;
      const { answer } = await send("/budget", null);
      if (answer.usd !== undefined) state.remainingUsd = answer.usd.remaining;
    }
  }
}

/** Runs functions at once. The result of one that throws is null. */
export async function parallel(thunks) {
  if (!Array.isArray(thunks) || thunks.some((thunk) => typeof thunk !== "function"))
    throw new TypeError("parallel: expected a list of functions, such as [() => agent(…)]");
  return await Promise.all(thunks.map((thunk) => settled(thunk)));
}

/** Passes each item through all stages: none waits for another item. */
export async function pipeline(items, ...stages) {
  const through = async (item, index) => {
    let value = item;
    for (const stage of stages) {
      value = await stage(value, item, index);
      if (value === null) return null;
    }
    return value;
  };
  return await Promise.all([...items].map((item, index) => settled(() => through(item, index))));
}

/** Names what follows, until the next name. */
export function phase(name) {
  state.phase = name;
  emit({ type: "phase", phase: name });
  note("phase", { output: name });
}

/** Reports something to who watches. */
export function log(text) {
  emit({ type: "log", text: String(text) });
  note("log", { output: String(text) });
}

/** Runs the default function of another script, with the same budget. A relative file is one of the working folder. */
export async function workflow(file, args = null) {
  const place = String(file).startsWith("file:") ? new URL(file) : new URL(file, workingFolder());
  const { default: main } = await import(place.href);
  if (typeof main !== "function") throw new TypeError(`workflow: ${file} has no default function`);
  return await main({ agent, parallel, pipeline, phase, log, budget, workflow, failures, args });
}

/** Reads the budget, once. */
export function connected() {
  state.connecting ??= send("/budget", null).then(({ answer }) => {
    if (answer.error !== undefined) throw new Error(`${answer.error.message} (${answer.error.code})`);
    state.totalUsd = answer.usd.limit;
    state.remainingUsd = answer.usd.remaining;
  });
  return state.connecting;
}

/** Waits until what was logged has arrived. */
export async function flushed() {
  await Promise.allSettled(notes);
}

const notes = new Set();

function note(event_type, fields) {
  const sent = send("/log", { ...fields, event_type }).finally(() => notes.delete(sent));
  notes.add(sent);
}

async function settled(thunk) {
  try {
    return (await thunk()) ?? null;
  } catch (error) {
    if (!(error instanceof BudgetError)) {
      failures.push({
        label: null,
        phase: state.phase,
        code: "script_error",
        message: String(error?.message ?? error),
      });
    }
    return null;
  }
}

/** The answer to a request, `{ error }` if it failed in whatever way. A lost connection is tried again. */
async function send(path, body) {
  const base = settings.url ?? variable("FANOUT_URL") ?? URL_DEFAULT;
  const token = settings.token ?? variable("FANOUT_TOKEN");
  if (!token) throw new Error("FANOUT_TOKEN is not set: it is the token that POST /runs returns");
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  if (path === "/query") headers["idempotency-key"] = crypto.randomUUID();
  const init = {
    method: body ? "POST" : "GET",
    headers,
    body: body ? JSON.stringify(body) : undefined,
    redirect: "manual",
  };
  for (const waitMs of [...RETRY_WAITS_MS, null]) {
    try {
      const response = await fetch(base.replace(/\/+$/, "") + path, init);
      const answer = JSON.parse(await response.text());
      if (!response.ok && answer.error === undefined) throw new Error(`status ${response.status}`);
      return { answer, headers: response.headers };
    } catch (cause) {
      const message = `no answer from the gateway at ${base}: ${cause.cause?.code ?? cause.message}`;
      if (waitMs === null) return { answer: { error: { code: "unreachable", message } }, headers: null };
      await new Promise((resolve) => setTimeout(resolve, waitMs));
    }
  }
}

function emit(event) {
  settings.onEvent?.(event);
}

function workingFolder() {
  return `file://${globalThis.process?.cwd?.() ?? ""}/`;
}

function variable(name) {
  try {
    return globalThis.process?.env?.[name] || globalThis.Deno?.env.get(name) || null;
  } catch {
    return null;
  }
}
