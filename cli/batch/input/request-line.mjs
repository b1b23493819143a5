/** Writes a prompt as a request of a batch, for each endpoint that a batch can use. */
import { Failure } from "../../failure.mjs";
import { textOf } from "../../text/json.mjs";

/** @typedef {import("./row.mjs").Row} Row */
/** @typedef {Pick<Row, "model" | "system" | "max_tokens" | "temperature">} Defaults */

export const CHAT = "/v1/chat/completions";
export const ENDPOINTS = [CHAT, "/v1/completions", "/v1/embeddings", "/v1/responses"];

/**
 * A line of a batch file, without its line end.
 * @param {Row} row
 * @param {{ id: string, endpoint: string, defaults: Defaults, line: number }} about
 */
export function requestLine(row, { id, endpoint, defaults, line }) {
  const body = bodyOf({ ...defaults, ...row }, { endpoint, line, hasOwnSystem: row.system !== undefined });
  return JSON.stringify({ custom_id: id, method: "POST", url: endpoint, body });
}

/**
 * @param {Row} ask
 * @param {{ endpoint: string, line: number, hasOwnSystem: boolean }} about
 */
function bodyOf(ask, { endpoint, line, hasOwnSystem }) {
  const { model, prompt, system, max_tokens, temperature, params } = ask;
  /** @param {string} what */
  const refuse = (what) => new Failure(`Line ${line}: ${endpoint} does not accept ${what}.`);
  const start = model === undefined ? {} : { model };
  const heat = temperature === undefined ? {} : { temperature };
  switch (endpoint) {
    case "/v1/embeddings":
      if (ask.messages !== undefined) throw refuse("messages");
      if (system !== undefined) throw refuse("system text");
      if (max_tokens !== undefined) throw refuse("max_tokens");
      if (temperature !== undefined) throw refuse("temperature");
      return { ...start, input: prompt, ...params };
    case "/v1/completions": {
      if (ask.messages !== undefined) throw refuse("messages");
      if (system !== undefined) throw refuse("system text");
      return { ...start, prompt, ...(max_tokens === undefined ? {} : { max_tokens }), ...heat, ...params };
    }
    case "/v1/responses": {
      const instructions = system === undefined ? {} : { instructions: system };
      const cap = max_tokens === undefined ? {} : { max_output_tokens: max_tokens };
      return { ...start, ...instructions, input: ask.messages ?? prompt, ...cap, ...heat, ...params };
    }
    default: {
      const cap = max_tokens === undefined ? {} : { max_tokens };
      const messages = messagesOf(ask, hasOwnSystem);
      return { ...start, messages, ...cap, ...heat, ...params };
    }
  }
}

/**
 * The default system text is not used if the messages begin with a system message.
 * @param {Row} ask
 * @param {boolean} hasOwnSystem
 */
function messagesOf({ prompt, messages = [{ role: "user", content: prompt }], system }, hasOwnSystem) {
  const first = textOf(messages[0], "role");
  const isReplaced = !hasOwnSystem && (first === "system" || first === "developer");
  return system === undefined || isReplaced ? messages : [{ role: "system", content: system }, ...messages];
}
