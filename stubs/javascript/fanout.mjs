/**
 * Asks a fanout gateway from JavaScript: Node 18.17 or newer, Deno, Bun, browsers, Workers. One file, no imports.
 *
 *     import { llmQuery, llmQueryBatch, llmStream } from "./fanout.mjs";
 *     const answer = await llmQuery("What is 2 + 2?", { model: "openai/gpt-4o-mini", max_tokens: 50 });
 *     const answers = await llmQueryBatch(pages.map((page) => `Summarise: ${page}`));
 *     for await (const { index, result } of llmStream(prompts)) console.log(index, result);
 *
 * FANOUT_URL names the gateway (default http://127.0.0.1:8787), FANOUT_TOKEN carries the run token, FANOUT_TIMEOUT_S is
 * the longest silence borne (default 660); GATEWAY_URL and GATEWAY_TOKEN stand in. Where there are no variables, as in
 * a page, call configure({ url, token }). Options are the gateway's request fields, and two that are not sent: `signal`
 * aborts the call; `idempotencyKey` lets a restarted program find the answers it paid for. Types: /stubs/typescript.
 */
const DEFAULTS = { url: "http://127.0.0.1:8787", timeoutS: 660 }; // Above the gateway's limit: its error shall arrive.
const PAUSES_MS = [250, 500, 1_000, 2_000]; // Before each further try where a connection was lost.
const settings = {};
/** A failed call. `code`: the gateway's, `no_token`, `bad_url`, `unreachable`, `timeout`, `bad_answer` or `tool_error`;
 * `status`: HTTP status or null; `retryable`: the same call may succeed later; `retryAfterMs`: when, or null. */
export class FanoutError extends Error {
  constructor(message, code, { status = null, retryable = false, retryAfterMs = null, cause } = {}) {
    super(message, { cause });
    Object.assign(this, { name: "FanoutError", code, status, retryable, retryAfterMs });
  }
}

/** Names the gateway in place of the variables: `{ url, token, timeoutS }`, or some of them. */
export const configure = (changes) => void Object.assign(settings, changes);
/** The answer to a prompt: a text, or an item of a batch such as `{ messages }`. An array of prompts is a batch. */
export async function llmQuery(prompt, options) {
  if (Array.isArray(prompt)) return llmQueryBatch(prompt, options);
  return (await ask("/query", "text", paidOnce(itemOf(prompt), options))).text;
}
/** The answers in the order of the prompts, which are asked at once. A failed one is "[error] message" in its place. */
export async function llmQueryBatch(prompts, options) {
  const list = listOf(prompts);
  if (list.length === 0) return [];
  const { results } = await ask("/batch", "results", paidOnce(batchOf(list), options));
  if (results?.length === list.length) return results;
  throw new FanoutError(`asked ${list.length} prompts, got ${results?.length} results`, "bad_answer");
}
/** Each slot once, as it ends: `{ index, result, error, … }`; then returns the group's last event. Leaving hangs up. */
export async function* llmStream(prompts, options) {
  const [list, given] = [listOf(prompts), new Set()];
  if (list.length === 0) return null;
  for await (const event of exchange("/batch", { ...paidOnce(batchOf(list), options), streams: true })) {
    if (event.type === "group_completed") return event;
    if (event.type === "slot" && !given.has(event.index)) yield ((given.add(event.index), event));
  }
}
/** What is left of the run's budget: `{ usd: { limit, spent, reserved, remaining }, calls, … }`. */
export const llmBudget = ({ signal } = {}) => ask("/budget", "usd", { signal });
/** What the run has used, in all and by model; `reset` has it counted from zero again. */
export const llmUsage = ({ reset, signal } = {}) => ask(reset ? "/usage?reset=1" : "/usage", "llm_calls", { signal });
/** What a tool of the run makes of `input`, an object. */
export const toolCall = async (name, input = {}, { signal } = {}) =>
  (await ask("/tool_call", "result", { signal, body: { tool_name: name, input } })).result;
/** Writes an event of the program's own into the run's log. Fields: `output`, `data`, `code`, `step`, … */
export const llmLog = async (type, fields, { signal } = {}) =>
  void (await ask("/log", "seq", { signal, body: { ...fields, event_type: type } }));
/** Leaves the program's result, any JSON value, in the run's log. */
export const FINAL = (x) => llmLog("final_result", { output: isText(x) ? x : JSON.stringify(x), data: x });

const isText = (value) => typeof value === "string";
const itemOf = (prompt) => (isText(prompt) ? { prompt } : Array.isArray(prompt) ? { messages: prompt } : prompt);
const batchOf = (list) => (list.every(isText) ? { prompts: list } : { items: list.map(itemOf) });
function listOf(prompts) {
  if (!isText(prompts)) return [...prompts];
  throw new TypeError("prompts must be a list"); // Each letter of a text would become a call that is paid for.
}
/** A request with a key, under which it is made and paid for once however often it is sent. */
function paidOnce(fields, { signal, idempotencyKey, ...options } = {}) {
  // Pages outside of secure contexts lack randomUUID; Node 18 lacks crypto.
  const random = () => globalThis.crypto?.randomUUID?.() ?? `${Date.now()}-${Math.random()}-${Math.random()}`;
  return { body: { ...options, ...fields }, signal, key: idempotencyKey ?? random() };
}
async function ask(path, field, request) {
  for await (const answer of exchange(path, request)) if (field in answer) return answer;
  throw new FanoutError(`the answer to ${path} has no field "${field}"`, "bad_answer");
}
/** The objects of an answer: one, or those of a stream. Where the connection is lost, what has a key is asked again. */
async function* exchange(path, { body, key, signal, streams }) {
  const base = (settings.url || variable("FANOUT_URL") || variable("GATEWAY_URL") || DEFAULTS.url).replace(/\/+$/, "");
  if (!/^https?:\/\/[^/?#@\s]+(\/[^?#\s]*)?$/i.test(base)) throw new FanoutError("FANOUT_URL is no address", "bad_url");
  const token = (settings.token || variable("FANOUT_TOKEN") || variable("GATEWAY_TOKEN") || "").trim();
  if (!/^[!-~]+$/.test(token)) throw new FanoutError("FANOUT_TOKEN is not set, or is no token", "no_token");
  const headers = new Headers({ authorization: `Bearer ${token}`, "content-type": "application/json" });
  if (key) headers.set("idempotency-key", key);
  if (streams) headers.set("accept", "application/x-ndjson");
  const hangUp = new AbortController();
  const stop = AbortSignal.any(signal ? [signal, hangUp.signal] : [hangUp.signal]);
  const init = { method: body ? "POST" : "GET", headers, body: JSON.stringify(body), redirect: "manual", signal: stop };
  const timeoutS = settings.timeoutS || Number(variable("FANOUT_TIMEOUT_S")) || DEFAULTS.timeoutS;
  const timeoutMs = Math.min(1_000 * timeoutS, 2 ** 31 - 1); // A longer timer would fire at once.
  const silence = new FanoutError(`silence of ${timeoutMs} ms`, "timeout", { retryable: true });
  let timer; // Runs on where fetch gives up a silence by itself: Node's and Bun's do, after five minutes.
  const heard = async (promise) => {
    timer ??= setTimeout(() => hangUp.abort(silence), timeoutMs);
    const value = await promise;
    timer = void clearTimeout(timer);
    return value;
  };
  try {
    for (const pauseMs of key ? [...PAUSES_MS, null] : [null]) {
      try {
        const response = await heard(fetch(base + path, init));
        for await (const text of textsOf(response.body, streams && response.ok ? "\n" : undefined, heard)) {
          if (streams && response.ok && text.trim() === "") continue; // It keeps the connection alive.
          const answer = answerOf(text, response);
          yield answer;
          if (!streams || answer.type === "group_completed") return;
        }
        throw new Error("the stream ended before its last line");
      } catch (cause) {
        if (stop.aborted || cause instanceof FanoutError) throw stop.reason ?? cause;
        if (!/timeout/i.test(cause.cause?.code ?? cause.name)) timer = void clearTimeout(timer);
        if (!pauseMs) throw new FanoutError(`no answer from ${base}`, "unreachable", { retryable: true, cause });
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
      }
    }
  } finally {
    clearTimeout(timer);
    hangUp.abort();
  }
}
/** The texts of an answer: all of it, or its lines as they end. It has no body where a page is not shown a redirect. */
async function* textsOf(body, separator, heard) {
  const [reader, decoder] = [(body ?? new Blob().stream()).getReader(), new TextDecoder()];
  for (let text = "", piece = {}; !piece.done;) {
    piece = await heard(reader.read());
    const texts = (text + decoder.decode(piece.value, { stream: !piece.done })).split(separator);
    if (separator || !piece.done) text = texts.pop();
    yield* texts;
  }
}
/** The object that a text is. Throws the failure that it tells of. */
function answerOf(text, { ok, status, headers }) {
  const answer = attempt(() => JSON.parse(text));
  if (ok && answer instanceof Object && (!answer.error || answer.type === "slot")) return answer;
  const error = isText(answer?.error) ? { message: answer.error, code: "tool_error" } : Object(answer?.error);
  const { message = `answered ${text.slice(0, 200)}`, code = "bad_answer", retryable = /408|503/.test(status) } = error;
  const retryAfterMs = Number(headers.get("retry-after-ms")) || null;
  throw new FanoutError(message, code, { status: (!ok && status) || null, retryable, retryAfterMs });
}
const variable = (name) => attempt(() => globalThis.process?.env?.[name] || globalThis.Deno?.env.get(name));
/** What `make` returns; undefined where it throws, as Deno does for a variable that it does not let be read. */
function attempt(make) {
  try {
    return make();
  } catch {}
}
