/**
 * Calls a fanout gateway from JavaScript: Node 18.17 or newer, Deno, Bun, browsers, Workers. One file, no imports.
 *
 *     import { llmQuery, llmQueryBatch, llmStream, withRun } from "./fanout.mjs";
 *     const answer = await llmQuery("What is 2 + 2?", "openai/gpt-4o-mini", { max_tokens: 50 });
 *     const answers = await llmQueryBatch(pages.map((page) => `Summarise: ${page}`));
 *     for await (const { index, result } of llmStream(prompts)) console.log(index, result);
 *     await withRun({ usd: 0.05 }, async ({ llmQueryBatch }) => …); // These calls can spend 0.05 USD at most.
 *
 * Environment variables:
 *     FANOUT_URL        the gateway's address (default http://127.0.0.1:8787); or GATEWAY_URL
 *     FANOUT_TOKEN      the run token, which POST /runs returned; or GATEWAY_TOKEN
 *     FANOUT_TIMEOUT_S  how long the gateway may be silent before a call fails (default 660)
 * A page has no environment: call configure({ url, token }).
 *
 * With `schema`, an answer is the JSON value that fits it, not its text. A string in second place is the model. Options
 * are the gateway's request fields, and two that are not sent as fields: `signal` aborts the call; `idempotencyKey`
 * names it, so that a restarted program that repeats it gets the recorded answer at no cost. If the connection is lost,
 * the request is repeated under the same key and is paid once. All other retries happen in the gateway.
 *
 * Ctrl-C in a program that does not handle it cancels the queued calls of all requests; those in flight end, and a line
 * on standard error says what was answered and spent, and how to continue. A request with an `idempotencyKey` goes on.
 * A second Ctrl-C waits for nothing.
 *
 * Types: /stubs/typescript.
 */

const URL_DEFAULT = "http://127.0.0.1:8787";

/** Longer than the gateway's own limit, so that its error message arrives. */
const TIMEOUT_S_DEFAULT = 660;

/** A longer timer would fire at once. */
const TIMEOUT_MS_MAX = 2 ** 31 - 1;

/** The waits before a request whose connection was lost is repeated. */
const RETRY_WAITS_MS = [250, 500, 1_000, 2_000];

/** How long Ctrl-C waits for the end of calls in flight, at most. */
const CANCEL_WAIT_MS = 60_000;

const BUDGET_FIELDS = ["usd", "calls", "prompt_tokens", "completion_tokens"];

/** What configure() has set. */
const settings = {};

/** Names this life of the program; chosen with its first request, because Workers have no random numbers before. */
let epoch;

/**
 * A failed call. `code`: the gateway's code, or `no_token`, `bad_url`, `unreachable`, `timeout`, `bad_answer`,
 * `tool_error`; `status`: the HTTP status or null; `retryable`: whether the same call may succeed later;
 * `retryAfterMs`: the wait that the gateway suggests, or null; `attempts`, `chargedUsd`: what a call that was made has
 * used up, else null.
 */
export class FanoutError extends Error {
  constructor(message, code, { cause, ...facts } = {}) {
    super(message, { cause });
    const { status = null, retryable = false, retryAfterMs = null, attempts = null, chargedUsd = null } = facts;
    this.name = "FanoutError";
    this.code = code;
    this.status = status;
    this.retryable = retryable;
    this.retryAfterMs = retryAfterMs;
    this.attempts = attempts;
    this.chargedUsd = chargedUsd;
  }
}

/** Sets `url`, `token` and `timeoutS`, or some of them, in place of the environment variables. */
export function configure(changes) {
  Object.assign(settings, changes);
}

/** Returns the functions of this file for one run. Without a token they use the one that is configured. */
function functionsOf(token) {
  const call = (path, field, request) => answerTo(path, field, { token, ...request });

  /** Answers a prompt: a string, or an item of a batch such as `{ messages }`. An array of prompts is a batch. */
  async function llmQuery(prompt, model, options) {
    if (Array.isArray(prompt)) return await llmQueryBatch(prompt, model, options);
    const request = keyedRequest(itemOf(prompt), optionsOf(model, options));
    const answer = await call("/query", "text", request);
    return "json" in answer ? answer.json : answer.text;
  }

  /**
   * Returns the whole message that answers a prompt or chat messages: `content`, `tool_calls`, … `tools` among the
   * options are those of a chat completion: sent back among the messages, with the results of its tools, the message
   * goes on. Or they are names of tools of the run, which the gateway calls itself.
   */
  async function llmMessage(prompt, model, options) {
    const request = keyedRequest(itemOf(prompt), asking(optionsOf(model, options)));
    return (await call("/query", "message", request)).message;
  }

  /**
   * Answers many prompts at once, in their order. The result of a failed prompt is "[error] message". With `tools` of
   * a chat completion, or with `include: ["message"]`, the answers are whole messages, as of llmMessage.
   */
  async function llmQueryBatch(prompts, model, options) {
    const list = listOf(prompts);
    if (list.length === 0) return [];
    const named = optionsOf(model, options);
    const wanted = named?.tools?.some((tool) => !isText(tool)) ? asking(named) : named;
    const answer = await call("/batch", "results", keyedRequest(batchOf(list), wanted));
    sayNarrowed(answer);
    const { results, items = [] } = answer;
    const name = wanted?.include?.includes("message") ? "message" : "json";
    if (results?.length === list.length)
      return results.map((text, at) => (name in { ...items[at] } ? items[at][name] : text));
    throw new FanoutError(`sent ${list.length} prompts, got ${results?.length} results`, "bad_answer");
  }

  /**
   * Yields each slot of a batch once, as it ends: `{ index, result, error, … }`. Returns the group's last event. A loop
   * that is left closes the connection.
   */
  async function* llmStream(prompts, model, options) {
    const list = listOf(prompts);
    if (list.length === 0) return null;
    const request = { ...keyedRequest(batchOf(list), optionsOf(model, options)), token, streams: true };
    const seen = new Set();
    for await (const event of exchange("/batch", request)) {
      if (event.type === "group_completed") {
        sayNarrowed(event);
        return event;
      }
      // A repeated request streams all slots once more.
      if (event.type !== "slot" || seen.has(event.index)) continue;
      seen.add(event.index);
      yield event;
    }
  }

  /**
   * Stores a text in the run and returns its id, which calls name as `context`: `llmQuery(question, { context: id })`.
   * The same text has the same id. The gateway puts it before each prompt; the requests of this program stay short.
   */
  async function llmContext(text, { name, signal } = {}) {
    return (await call("/contexts", "id", keyedRequest({ text, name }, { signal }))).id;
  }

  /**
   * Answers a prompt about each chunk of a text, in the text's order. `context`: a text, or the id of one. The prompt
   * has `{{chunk}}` where a chunk goes. Options: those of a batch, and `size`, the most characters of a chunk; `by`:
   * `chars`, `lines`, `paragraphs` or `markdown`; `overlap`, the most characters repeated of the chunk before.
   */
  async function llmMap(context, prompt, { size = 8_000, by = "chars", overlap = 0, ...options } = {}) {
    const id = /^ctx_[0-9a-f]{32}$/.test(context) ? context : await llmContext(context, { signal: options.signal });
    const fields = { over: { context: id, split: { by, size, overlap } }, prompt };
    const answer = await call("/batch", "results", keyedRequest(fields, options));
    sayNarrowed(answer);
    return answer.results;
  }

  /**
   * Returns the answer of a graph, a list of tasks whose prompts refer to each other:
   * `{ id: "b", prompt: "{{a.output}} …" }`. The outputs of its last tasks are in `outputs`, by id.
   */
  function llmDag(tasks, options) {
    return call("/dag", "tasks", keyedRequest({ tasks: [...tasks] }, options));
  }

  /**
   * Cancels the queued calls of a group, by its id or by the key of its request. Calls in flight end and cost what they
   * cost; with `inFlight: "abort"` they are aborted and stay charged at their reservation. `waitMs`: how long to wait
   * for their end, up to 60,000. Returns `{ groups, ids, counts, spent_usd }`; `groups` 0: there is none.
   */
  function llmCancel(group, { inFlight = "end", waitMs = 0, signal } = {}) {
    const names = /^pg-\d+-\w+$/.test(group) ? "ids" : "idempotency_keys";
    const body = { [names]: [group], in_flight: inFlight, wait_ms: waitMs };
    return call("/groups/cancel", "counts", { signal, body });
  }

  /** Makes the calls of a group again that did not complete. Returns the answer of the new group, with all results. */
  function llmRetry(group, options) {
    return call(`/groups/${group}/retry`, "results", keyedRequest({}, options));
  }

  /** Asks a prompt `n` times. Returns the vote: `{ decided, winner, agreement, … }`. `aggregate` changes its rule. */
  async function llmVote(prompt, n = 3, options = {}) {
    const fields = { aggregate: { strategy: "vote" }, ...options };
    const request = keyedRequest(batchOf(Array.from({ length: n }, () => prompt)), fields);
    return (await call("/batch", "aggregation", request)).aggregation;
  }

  /**
   * Opens a child run for the time of `scope`, an async function. It receives `{ id, token }` of the child with the
   * functions of this file: calls made by those spend the child's budget. Returns what `scope` returns.
   *
   *     const answers = await withRun({ usd: 0.05, calls: 20 }, ({ llmQueryBatch }) => llmQueryBatch(prompts));
   *
   * `usd`, `calls`, `prompt_tokens` and `completion_tokens` are limits. They are reserved in the budget of the run that
   * opens the child; a limit that is left out becomes an equal split of what remains there. Other settings are the
   * fields of POST /runs. When `scope` ends or throws, the child is closed and what it has not spent returns.
   */
  async function withRun(runSettings, scope) {
    const { signal, idempotencyKey, ...fields } = runSettings;
    const opened = await call("/runs", "token", keyedRequest(runOf(fields), { signal, idempotencyKey }));
    const close = () => call(`/runs/${opened.id}/close`, "status", keyedRequest({}));
    let result;
    try {
      result = await scope({ id: opened.id, token: opened.token, ...functionsOf(opened.token) });
    } catch (error) {
      await close().catch(() => undefined); // The scope's own error matters more.
      throw error;
    }
    await close();
    return result;
  }

  /**
   * Returns what is left of the run's budget, child runs included: `{ usd: { limit, spent, reserved, remaining },
   * calls, prompt_tokens, completion_tokens }`. The limit of an open child is in `reserved`, what a closed one spent is
   * in `spent`.
   */
  function llmBudget({ signal } = {}) {
    return call("/budget", "usd", { signal });
  }

  /**
   * Returns what the run itself has used, in all and by model: child runs are not included, what they spent is in
   * llmBudget(). `reset` then counts from zero.
   */
  function llmUsage({ reset, signal } = {}) {
    return call(reset ? "/usage?reset=1" : "/usage", "llm_calls", { signal });
  }

  /** Returns the result of a tool of the run. Sent once, also if the connection is lost: a tool may have effects. */
  async function toolCall(name, input = {}, { signal } = {}) {
    const answer = await call("/tool_call", "result", { signal, body: { tool_name: name, input } });
    return answer.result;
  }

  /** Appends an event to the run's log. Fields: `output`, `data`, `code`, `step`, … */
  async function llmLog(type, fields, { signal } = {}) {
    await call("/log", "seq", { signal, body: { ...fields, event_type: type } });
  }

  /** Records the program's result, any JSON value, in the run's log. */
  async function FINAL(x) {
    await llmLog("final_result", { output: isText(x) ? x : JSON.stringify(x), data: x });
  }

  const calls = {
    llmQuery,
    llmMessage,
    llmQueryBatch,
    llmStream,
    llmContext,
    llmMap,
    llmDag,
    llmVote,
    llmCancel,
    llmRetry,
  };
  return { ...calls, withRun, llmBudget, llmUsage, toolCall, llmLog, FINAL };
}

const own = functionsOf(null);
export const { llmQuery, llmMessage, llmQueryBatch, llmStream, llmContext, llmMap, llmDag, llmVote } = own;
export const { llmCancel, llmRetry } = own;
export const { withRun, llmBudget, llmUsage, toolCall, llmLog, FINAL } = own;

function isText(value) {
  return typeof value === "string";
}

/** The options of a call whose second argument is a model or the options. */
function optionsOf(model, options) {
  return isText(model) ? { ...options, model } : (model ?? options);
}

/** Options that ask for the whole message, and send `tools`. */
function asking({ tools, include = [], ...options } = {}) {
  const wanted = { ...options, include: [...new Set(["message", ...include])] };
  if (tools === undefined) return wanted;
  // The run's own tools go by their names; definitions are the upstream's.
  if (tools.every(isText)) return { ...wanted, tools };
  return { ...wanted, params: { ...options.params, tools } };
}

function itemOf(prompt, index) {
  if (isText(prompt)) return { prompt };
  if (Array.isArray(prompt)) return { messages: prompt };
  if (typeof prompt === "object" && prompt !== null) return prompt;
  const name = index === undefined ? "prompt" : `prompts[${index}]`;
  throw new TypeError(`${name} is ${String(prompt)}, not a string, a list of messages or an object`);
}

function listOf(prompts) {
  // Each letter of a string would become a call that is paid for.
  if (isText(prompts)) throw new TypeError("prompts must be a list of prompts, not one string");
  return [...prompts];
}

function batchOf(list) {
  return list.every(isText) ? { prompts: list } : { items: list.map((each, index) => itemOf(each, index)) };
}

/** The fields of POST /runs: limits go into `budget`. */
function runOf(fields) {
  const limits = Object.entries(fields).filter(([name]) => BUDGET_FIELDS.includes(name));
  const others = Object.entries(fields).filter(([name]) => !BUDGET_FIELDS.includes(name));
  if (limits.length === 0) return fields;
  return { ...Object.fromEntries(others), budget: { ...fields.budget, ...Object.fromEntries(limits) } };
}

/** A request with a key, under which it is made and paid once however often it is sent. */
function keyedRequest(fields, { signal, idempotencyKey, ...options } = {}) {
  const key = idempotencyKey ?? randomKey();
  return { body: { ...options, ...fields }, signal, key, hasOwnKey: idempotencyKey != null };
}

function randomKey() {
  // Pages outside of secure contexts have no randomUUID; Node 18 has no crypto.
  return globalThis.crypto?.randomUUID?.() ?? `${Date.now()}-${Math.random()}-${Math.random()}`;
}

/** The answer to a request, which must have the field. */
async function answerTo(path, field, request) {
  for await (const answer of exchange(path, request)) if (field in answer) return answer;
  throw new FanoutError(`the answer to ${path} has no field "${field}"`, "bad_answer");
}

/**
 * Yields the objects of an answer: one, or those of a stream. GET without a body. If the connection is lost, a request
 * with a key is repeated.
 */
async function* exchange(path, request) {
  if (!/^\/(query|batch|dag)$/.test(path)) return yield* repeated(path, request);
  // While the program ends, it begins nothing new.
  await interrupts.ended();
  const done = interrupts.watch(request);
  try {
    for await (const answer of repeated(path, request)) {
      await interrupts.ended();
      yield answer;
    }
  } catch (error) {
    await interrupts.ended();
    throw error;
  } finally {
    done();
  }
}

/** The requests under way whose queued calls Ctrl-C cancels, in a program that does not handle Ctrl-C itself. */
const interrupts = {
  open: new Set(),
  ending: null,
  stop: null,

  /** Watches a request until the function that it returns is called. */
  watch(request) {
    this.open.add(request);
    if (this.stop === null && globalThis.process?.listenerCount?.("SIGINT") === 0) {
      const end = () => {
        this.stop(); // A second Ctrl-C waits for nothing.
        this.ending = this.end();
      };
      const { process } = globalThis;
      process.on("SIGINT", end);
      this.stop = () => {
        process.off("SIGINT", end);
        this.stop = null;
      };
    }
    return () => {
      this.open.delete(request);
      if (this.open.size === 0) this.stop?.();
    };
  },

  async ended() {
    await this.ending;
  },

  async end() {
    const line = await cancelled([...this.open]);
    console.error(`fanout: interrupted. ${line}`);
    globalThis.process.kill(globalThis.process.pid, "SIGINT");
  },
};

/**
 * Says on standard error why few calls of a batch ran at once, and what helps. Where the budget did not last, the
 * errors of the calls say what helps.
 */
function sayNarrowed({ metrics, status }) {
  const by = metrics?.narrowed_by;
  if (by === undefined || status !== "completed") return;
  console.error(`fanout: the budget let ${by.width} of ${by.of} calls run at once. To run more, ${by.remedy}.`);
}

/** Cancels requests and says what became of them. */
async function cancelled(requests) {
  const [owned, others] = [true, false].map((isOwn) => requests.filter(({ hasOwnKey }) => hasOwnKey === isOwn));
  const lines = [];
  try {
    const byToken = new Map(others.map(({ token }) => [token ?? null, []]));
    for (const { token, key } of others) byToken.get(token ?? null).push(key);
    const done = await Promise.all([...byToken].map(([token, keys]) => cancelKeys(token, keys)));
    if (done.length > 0) lines.push(endedLine(done));
  } catch (error) {
    lines.push(`Its calls go on (${error.message}).`);
  }
  if (owned.length > 0) {
    const key = JSON.stringify(owned[0].key);
    const again = `the same call with idempotencyKey: ${key} returns its answers, llmCancel(${key}) stops it`;
    lines.push(`The gateway goes on with it: ${again}.`);
  }
  return lines.join(" ");
}

async function cancelKeys(token, keys) {
  const body = { idempotency_keys: keys, wait_ms: CANCEL_WAIT_MS };
  for (const waitMs of [...RETRY_WAITS_MS, null]) {
    const done = await answerTo("/groups/cancel", "counts", { token, body });
    if (done.groups > 0 || waitMs === null) return done;
    await new Promise((resolve) => setTimeout(resolve, waitMs)); // The gateway may still read the request.
  }
}

/** What the calls of cancelled requests have come to. */
function endedLine(replies) {
  const ids = replies.flatMap((done) => done.ids);
  if (ids.length === 0) return "No call was made.";
  const count = (state) => replies.reduce((sum, { counts }) => sum + counts[state], 0);
  const calls = Object.keys(replies[0].counts).reduce((sum, state) => sum + count(state), 0);
  const others = ["failed", "cancelled", "running"].filter((state) => count(state) > 0);
  const rest = others.map((state) => `, ${count(state)} ${state}`).join("");
  const spent = usdText(replies.reduce((sum, done) => sum + done.spent_usd, 0));
  const line = `${count("completed")} of ${calls} calls answered${rest}, ${spent} spent.`;
  if (calls === count("completed")) return line;
  if (ids.length > 1 || calls === 1) return `${line} With an idempotencyKey, answers are kept for the next time.`;
  return `${line} llmRetry(${JSON.stringify(ids[0])}) makes the rest and returns all answers.`;
}

/** An amount of money for people: `$0.0040`, `$12.34`, `<$0.0001`. */
function usdText(usd) {
  if (usd <= 0) return "$0";
  return usd < 0.00005 ? "<$0.0001" : `$${usd.toFixed(usd >= 1 ? 2 : 4)}`;
}

async function* repeated(path, { token, body, key, signal, streams = false }) {
  const base = gatewayUrl();
  const hangUp = new AbortController();
  const stop = AbortSignal.any(signal ? [signal, hangUp.signal] : [hangUp.signal]);
  const init = {
    method: body ? "POST" : "GET",
    headers: headersOf({ token: token ?? ownToken(), key, streams }),
    body: JSON.stringify(body),
    redirect: "manual", // A redirect would carry the token to another host.
    signal: stop,
  };
  const silence = new SilenceTimer((error) => hangUp.abort(error));
  try {
    for (const waitMs of key ? [...RETRY_WAITS_MS, null] : [null]) {
      try {
        yield* answersIn(await silence.limit(fetch(base + path, init)), streams, silence);
        return;
      } catch (cause) {
        if (stop.aborted) throw stop.reason;
        if (cause instanceof FanoutError) throw cause;
        // If fetch gave up a silence by itself (Node's and Bun's do, after five minutes), the same silence goes on.
        if (!/timeout/i.test(cause.cause?.code ?? cause.name)) silence.end();
        if (waitMs === null) {
          throw new FanoutError(`no answer from the gateway at ${base}`, "unreachable", { retryable: true, cause });
        }
        await new Promise((resolve) => setTimeout(resolve, waitMs));
      }
    }
  } finally {
    silence.end();
    hangUp.abort();
  }
}

function gatewayUrl() {
  const url = settings.url || variable("FANOUT_URL") || variable("GATEWAY_URL") || URL_DEFAULT;
  // With the `/v1` that OpenAI's clients want, it is the same gateway.
  if (/^https?:\/\/[^/?#@\s]+(\/[^?#\s]*)?$/i.test(url)) return url.replace(/\/+(v1\/*)?$/, "");
  throw new FanoutError(`FANOUT_URL must be an http:// or https:// address, not "${url}"`, "bad_url");
}

function ownToken() {
  const token = (settings.token || variable("FANOUT_TOKEN") || variable("GATEWAY_TOKEN") || "").trim();
  if (/^[!-~]+$/.test(token)) return token;
  throw new FanoutError("FANOUT_TOKEN is not set: it is the token that POST /runs returns", "no_token");
}

function headersOf({ token, key, streams }) {
  const headers = new Headers({ authorization: `Bearer ${token}`, "content-type": "application/json" });
  epoch ??= randomKey();
  headers.set("x-fanout-epoch", epoch);
  if (key) headers.set("idempotency-key", key);
  if (streams) headers.set("accept", "application/x-ndjson");
  return headers;
}

/** Limits how long the gateway may be silent, also over several attempts. */
class SilenceTimer {
  #timer;
  #onTimeout;
  #timeoutMs;

  constructor(onTimeout) {
    const timeoutS = settings.timeoutS || Number(variable("FANOUT_TIMEOUT_S")) || TIMEOUT_S_DEFAULT;
    this.#timeoutMs = Math.min(1_000 * timeoutS, TIMEOUT_MS_MAX);
    this.#onTimeout = onTimeout;
  }

  /** Waits for a sign of life. If it fails, the silence goes on until end() or the next sign of life. */
  async limit(promise) {
    this.#timer ??= setTimeout(() => {
      const message = `the gateway was silent for ${this.#timeoutMs} ms`;
      this.#onTimeout(new FanoutError(message, "timeout", { retryable: true }));
    }, this.#timeoutMs);
    const value = await promise;
    this.end();
    return value;
  }

  end() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}

/** Yields the objects of a response. Throws if it ends too early. */
async function* answersIn(response, streams, silence) {
  const isStream = streams && response.ok;
  for await (const text of textsOf(response.body, isStream, silence)) {
    if (isStream && text.trim() === "") continue; // It keeps the connection alive.
    const answer = answerOf(text, response);
    yield answer;
    if (!streams || answer.type === "group_completed") return;
  }
  throw new Error("the stream ended before its last line");
}

/** Yields the whole text of a body, or each line as it ends. The body of a redirect that a page may not see is null. */
async function* textsOf(body, byLine, silence) {
  const decoder = new TextDecoder();
  const reader = (body ?? new Blob().stream()).getReader();
  let text = "";
  for (let isDone = false; !isDone;) {
    const { value, done } = await silence.limit(reader.read());
    isDone = done;
    text += decoder.decode(value, { stream: !done });
    if (!byLine) continue;
    const lines = text.split("\n");
    text = lines.pop();
    yield* lines;
  }
  if (!byLine) yield text; // A line without its end was cut.
}

/** The object that a text is. Throws the failure that it reports. */
function answerOf(text, { ok, status, headers }) {
  const answer = valueOr(undefined, () => JSON.parse(text));
  const isObject = answer instanceof Object;
  if (ok && isObject && (!answer.error || answer.type === "slot")) return answer;
  const error = isText(answer?.error) ? { message: answer.error, code: "tool_error" } : Object(answer?.error);
  const { message = `unexpected answer: ${text.slice(0, 200)}`, code = "bad_answer" } = error;
  const { retryable = status === 408 || status === 503 } = error;
  const retryAfterMs = Number(headers.get("retry-after-ms")) || null;
  const { attempts = null, charged_usd: chargedUsd = null } = error;
  throw new FanoutError(message, code, {
    status: ok ? null : status || null,
    retryable,
    retryAfterMs,
    attempts,
    chargedUsd,
  });
}

/** An environment variable. Deno throws for one that the program may not read. */
function variable(name) {
  return valueOr(undefined, () => globalThis.process?.env?.[name] || globalThis.Deno?.env.get(name));
}

/** What `make` returns, or the other value if it throws. */
function valueOr(other, make) {
  try {
    return make();
  } catch {
    return other;
  }
}
