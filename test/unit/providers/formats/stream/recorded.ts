/** Streams as servers write them, by hand from the protocols' documents, and a way to play them through a tap. */
import { StreamObserver, type StreamObserverOptions } from "../../../../../src/providers/formats/stream/observer.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

const head = '"id":"chatcmpl-B9","object":"chat.completion.chunk","created":1763712000,"model":"gpt-5-mini-2026-01-01"';

/** A chat stream whose usage was requested by the client or the gateway. The big integer must survive. */
export const chatEvents = [
  `data: {${head},"choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"finish_reason":null}],"usage":null,"obfuscation":"q"}\n\n`,
  `data: {${head},"choices":[{"index":0,"delta":{"content":"Grüße "},"finish_reason":null}],"usage":null,"nonce":12345678901234567890123}\n\n`,
  ": keep-alive\n\n",
  `data: {${head},"choices":[{"index":0,"delta":{"content":"\\"usage\\":{🦊}\\n"},"finish_reason":null}],"usage":null}\n\n`,
  `data: {${head},"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null}\n\n`,
  `data: {${head},"choices":[],"usage":{"prompt_tokens":19,"completion_tokens":10,"total_tokens":29,"prompt_tokens_details":{"cached_tokens":8}}}\n\n`,
  "data: [DONE]\n\n",
];
export const chatUsage = {
  promptTokens: 19,
  completionTokens: 10,
  cachedTokens: 8,
  reasoningTokens: 0,
  costNanoUsd: null,
};

export const completionEvents = [
  'data: {"id":"cmpl-7","object":"text_completion","created":1763712000,"choices":[{"text":"Once","index":0,"logprobs":null,"finish_reason":null}],"model":"llama-3"}\n\n',
  'data: {"id":"cmpl-7","object":"text_completion","created":1763712000,"choices":[{"text":" more","index":0,"logprobs":null,"finish_reason":"length"}],"model":"llama-3"}\n\n',
  'data: {"id":"cmpl-7","object":"text_completion","created":1763712000,"choices":[],"model":"llama-3","usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}\n\n',
  "data: [DONE]\n\n",
];

const response = (status: string, rest: string): string =>
  `"response":{"id":"resp_1","object":"response","created_at":1763712000,"status":"${status}","error":null,"incomplete_details":null,"model":"gpt-5-mini","output":[],${rest}}`;

export const responsesEvents = [
  `event: response.created\ndata: {"type":"response.created","sequence_number":0,${response("in_progress", '"usage":null')}}\n\n`,
  `event: response.output_item.added\ndata: {"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"id":"msg_1","type":"message","status":"in_progress","content":[],"role":"assistant"}}\n\n`,
  `event: response.output_text.delta\ndata: {"type":"response.output_text.delta","sequence_number":2,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"Über"}\n\n`,
  `event: response.output_text.delta\ndata: {"type":"response.output_text.delta","sequence_number":3,"item_id":"msg_1","output_index":0,"content_index":0,"delta":" alles"}\n\n`,
  `event: response.output_text.done\ndata: {"type":"response.output_text.done","sequence_number":4,"item_id":"msg_1","output_index":0,"content_index":0,"text":"Über alles"}\n\n`,
  `event: response.completed\ndata: {"type":"response.completed","sequence_number":5,${response("completed", '"usage":{"input_tokens":36,"input_tokens_details":{"cached_tokens":4},"output_tokens":87,"output_tokens_details":{"reasoning_tokens":60},"total_tokens":123},"metadata":{}')}}\n\n`,
];

export const messagesEvents = [
  'event: message_start\ndata: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":25,"cache_creation_input_tokens":7,"cache_read_input_tokens":5,"output_tokens":1}}}\n\n',
  'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n',
  'event: ping\ndata: {"type": "ping"}\n\n',
  'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello — "}}\n\n',
  'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"you!"}}\n\n',
  'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n',
  'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":15}}\n\n',
  'event: message_stop\ndata: {"type":"message_stop"}\n\n',
];

export const recorded = {
  chat: chatEvents,
  completions: completionEvents,
  responses: responsesEvents,
  messages: messagesEvents,
};

export function bytesOf(text: string): Uint8Array {
  return encoder.encode(text);
}

export function textOf(pieces: readonly Uint8Array[]): string {
  return decoder.decode(joined(pieces));
}

export function joined(pieces: readonly Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(pieces));
}

/** Options with a price of 1 USD per thousand tokens. */
export function observerOptions(options: Partial<StreamObserverOptions>): StreamObserverOptions {
  return {
    family: "chat",
    upstream: "up",
    usageChunk: "requested",
    costUsdOf: ({ promptTokens, completionTokens }) => (promptTokens + completionTokens) / 1_000,
    ...options,
  };
}

export type Played = { sent: Uint8Array; outcome: ReturnType<StreamObserver["end"]>["outcome"] };

/** Plays chunks through a tap. Each chunk's memory is overwritten once its turn is over, as a reader may do. */
export function play(
  chunks: readonly Uint8Array[],
  options: Partial<StreamObserverOptions>,
  how: "clean" | "broken" = "clean",
): Played {
  const tap = new StreamObserver(observerOptions(options));
  const sent: Uint8Array[] = [];
  for (const chunk of chunks) {
    const lent = chunk.slice();
    sent.push(...tap.feed(lent).map((piece) => piece.slice()));
    lent.fill(0);
  }
  const { bytes, outcome } = tap.end(how);
  return { sent: joined([...sent, ...bytes]), outcome };
}

/** Plays a stream that arrives in one chunk, and reads what the client got as text. */
export function playText(text: string, options: Partial<StreamObserverOptions>, how: "clean" | "broken" = "clean") {
  const { sent, outcome } = play([bytesOf(text)], options, how);
  return { text: textOf([sent]), outcome };
}
