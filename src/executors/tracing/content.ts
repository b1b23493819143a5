/** Prompts and answers of attempts for exported traces, where the operator wants them there. */
import type { Answer, CallBody, Endpoint, Outcome, SpanContent } from "../../call.ts";
import { tryParse } from "../../text/json/parse.ts";
import { isRecord } from "../../text/json/record.ts";
import { OTLP_CONTENT_READ_BYTES_MAX } from "../../limits.ts";
import { readAnthropicMessage } from "../../providers/formats/anthropic/answer.ts";
import { aggregateStream } from "../../providers/formats/aggregate/stream.ts";
import { readCompletion } from "../../providers/formats/response/chat.ts";
import type { Upstream } from "../../providers/config/types.ts";
import type { ExchangeDeps } from "../../providers/exchange.ts";
import { withoutOwnSecrets } from "../../providers/redact.ts";
import { AnswerCopy } from "../cassettes/answer.ts";
import { inputJson, instructionsJson, outputJson, type Asked, type Said } from "./messages.ts";

/** The outcome of a call with its prompt and answer; unchanged unless the upstream's content is exported. */
export function withContent(upstream: Upstream, { raw, ...body }: CallBody, outcome: Outcome): Outcome {
  if (upstream.exportsContent !== true) return outcome;
  const asked = raw === undefined ? body : askedIn(raw.json);
  return described(upstream, asked, outcome, outcome.kind === "success" ? saidIn(outcome) : null);
}

/** A relayed request whose answer is copied on its way. */
export class RelayedContent {
  readonly #upstream: Upstream;
  readonly #endpoint: Endpoint;
  readonly #asked: Asked;
  readonly #copy = new AnswerCopy();

  /** Null, unless the upstream's content is exported. */
  static of(
    upstream: Upstream,
    { bytes, facts }: { bytes: Uint8Array; facts: { endpoint: Endpoint } },
  ): RelayedContent | null {
    return upstream.exportsContent === true ? new RelayedContent(upstream, facts.endpoint, bytes) : null;
  }

  private constructor(upstream: Upstream, endpoint: Endpoint, bytes: Uint8Array) {
    this.#upstream = upstream;
    this.#endpoint = endpoint;
    this.#asked = bytes.length > OTLP_CONTENT_READ_BYTES_MAX ? {} : askedIn(new TextDecoder().decode(bytes));
  }

  /** A `fetch` whose answers are copied as they are read. */
  fetchWith(fetch: ExchangeDeps["fetch"]): ExchangeDeps["fetch"] {
    return async (url, init) => this.#copy.copied(await fetch(url, init));
  }

  /** The outcome with the prompt and the answer. */
  in(outcome: Outcome): Outcome {
    return described(this.#upstream, this.#asked, outcome, outcome.kind === "success" ? this.#said() : null);
  }

  /** Null for an answer that has no text, or is too long, or of a stream that nothing here assembles. */
  #said(): Said | null {
    const { answer } = this.#copy;
    if (answer === null) return null;
    const whole = answer.chunks.join("");
    if (!answer.contentType.includes("text/event-stream")) return saidBy(this.#endpoint, whole);
    if (this.#endpoint !== "chat" && this.#endpoint !== "messages") return null;
    const read = aggregateStream(this.#endpoint, new TextEncoder().encode(whole), "clean");
    return read.kind === "answer" ? saidBy(this.#endpoint, read.text) : null;
  }
}

function described(upstream: Upstream, asked: Asked, outcome: Outcome, said: Said | null): Outcome {
  const clean = (json: string): string => withoutOwnSecrets(json, upstream);
  const system = instructionsJson(asked);
  const input = inputJson(asked);
  const finishReason = outcome.kind === "success" ? outcome.finishReason : null;
  const content: SpanContent = {
    ...(system === null ? {} : { system: clean(system) }),
    ...(input === null ? {} : { input: clean(input) }),
    ...(said === null ? {} : { output: clean(outputJson(said, finishReason)) }),
  };
  return { ...outcome, content };
}

function askedIn(json: string): Asked {
  const body = tryParse(json);
  return isRecord(body) ? body : {};
}

/** A message that is too long to be read is left out. */
function saidIn({ text, parts }: Pick<Answer, "text" | "parts">): Said {
  const message = parts?.message;
  if (message === undefined || message.length > OTLP_CONTENT_READ_BYTES_MAX) return { text };
  return { text, message: tryParse(message) };
}

/** What the body of an answer says. */
function saidBy(endpoint: Endpoint, body: string): Said | null {
  const json = tryParse(body);
  if (endpoint === "chat" || endpoint === "messages") {
    const read = endpoint === "chat" ? readCompletion(json) : readAnthropicMessage(json);
    if (!read.ok) return null;
    const parts = read.partsIn(body, []);
    return saidIn({ text: read.text, ...(parts !== undefined && { parts }) });
  }
  const text = textOf(endpoint, json);
  return text === null ? null : { text };
}

function textOf(endpoint: Endpoint, json: unknown): string | null {
  if (!isRecord(json)) return null;
  if (endpoint === "completions") return textsIn(json["choices"]);
  return endpoint === "responses" && Array.isArray(json["output"])
    ? textsIn(json["output"].flatMap((item: unknown): unknown[] => (isRecord(item) ? listIn(item["content"]) : [])))
    : null;
}

function textsIn(parts: unknown): string | null {
  const texts = listIn(parts).flatMap((part) =>
    isRecord(part) && typeof part["text"] === "string" ? [part["text"]] : [],
  );
  return texts.length === 0 ? null : texts.join("");
}

function listIn(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}
