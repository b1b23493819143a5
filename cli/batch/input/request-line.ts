/** Writes a prompt as a request of a batch, for each endpoint that a batch can use. */
import { Failure } from "../../failure.ts";
import { textOf } from "../../text/json.ts";
import type { Row } from "./row.ts";

export type Defaults = Pick<Row, "model" | "system" | "max_tokens" | "temperature">;

export const CHAT = "/v1/chat/completions";
export const ENDPOINTS = [CHAT, "/v1/completions", "/v1/embeddings", "/v1/responses"];

/** A line of a batch file, without its line end. */
export function requestLine(
  row: Row,
  { id, endpoint, defaults, line }: { id: string; endpoint: string; defaults: Defaults; line: number },
) {
  const body = bodyOf({ ...defaults, ...row }, { endpoint, line, hasOwnSystem: row.system !== undefined });
  return JSON.stringify({ custom_id: id, method: "POST", url: endpoint, body });
}

function bodyOf(ask: Row, { endpoint, line, hasOwnSystem }: { endpoint: string; line: number; hasOwnSystem: boolean }) {
  const { model, prompt, system, max_tokens, temperature, params } = ask;
  const refuse = (what: string) => new Failure(`Line ${line}: ${endpoint} does not accept ${what}.`);
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

/** The default system text is not used if the messages begin with a system message. */
function messagesOf({ prompt, messages = [{ role: "user", content: prompt }], system }: Row, hasOwnSystem: boolean) {
  const first = textOf(messages[0], "role");
  const isReplaced = !hasOwnSystem && (first === "system" || first === "developer");
  return system === undefined || isReplaced ? messages : [{ role: "system", content: system }, ...messages];
}
