/** Whole answers as servers write them, by hand from the protocols' documents, and a way to play them through a tap. */
import type { Usage } from "../../../../../src/call.ts";
import type { AnswerFacts } from "../../../../../src/providers/formats/response/fields.ts";
import type { Endpoint } from "../../../../../src/call.ts";
import { AnswerObserver, type AnswerObserverOptions } from "../../../../../src/providers/formats/response/observer.ts";
import { joined } from "../stream/recorded.ts";

export type Recorded = { endpoint: Endpoint; text: string } & AnswerFacts;

const usage = (promptTokens: number, completionTokens: number, more: Partial<Usage> = {}): Usage => {
  return { promptTokens, completionTokens, cachedTokens: 0, reasoningTokens: 0, costNanoUsd: null, ...more };
};

const floats = (count: number): string => Array.from({ length: count }, (_, at) => Math.sin(at) / 50).join(", ");

/** Names of nested objects, texts and keys that must not be taken for the top-level usage. */
const DECOYS =
  '"metadata":{"usage":{"prompt_tokens":1,"completion_tokens":1},"a\\"usage\\":{":"\\"usage\\":{}","\\\\":"\\\\"}';

export const answers: Readonly<Record<string, Recorded>> = {
  "chat, usage last": {
    endpoint: "chat",
    text: `{
  "id": "chatcmpl-B9",
  "object": "chat.completion",
  "created": 1763712000,
  "model": "gpt-5-mini-2026-01-01",
  "choices": [
    {
      "index": 0,
      "message": {"role": "assistant", "content": "Grüße 🦊 \\"usage\\":{\\n\\\\", "refusal": null, "annotations": []},
      "logprobs": {"content": [{"token": "}", "logprob": -1.5e-7, "bytes": [125], "usage": {"cost": 1}}]},
      "finish_reason": "stop"
    },
    {"index": 1, "message": {"role": "assistant", "content": ""}, "finish_reason": "length"}
  ],
  "usage": {"prompt_tokens": 19, "completion_tokens": 10, "total_tokens": 29, "prompt_tokens_details": {"cached_tokens": 8} },
  "service_tier": "default",
  "nonce": 12345678901234567890123
}
`,
    usage: usage(19, 10, { cachedTokens: 8, serviceTier: "default" }),
    model: "gpt-5-mini-2026-01-01",
    finishReason: "stop",
    id: "chatcmpl-B9",
    hasError: false,
  },
  "chat, usage first": {
    endpoint: "chat",
    text: `{"usage":{"completion_tokens":5,"prompt_tokens":2e1,"total_tokens":25},${DECOYS},"choices":[{"finish_reason":"tool_calls","message":{"tool_calls":[{"function":{"arguments":"{\\"usage\\":{}}"}}],"finish_reason":"no"},"index":0}],"model":"vendor/\\u006dodel","id":null}`,
    usage: usage(20, 5),
    model: "vendor/model",
    finishReason: "tool_calls",
    id: null,
    hasError: false,
  },
  "completions, usage in the middle": {
    endpoint: "completions",
    text: `{"id":"cmpl-7","object":"text_completion","created":1763712000,${DECOYS},"\\u0075s\\u0061ge" : {"prompt_tokens":3,"completion_tokens":2,"total_tokens":5},"model":"llama-3","choices":[{"text":"Once\\ud83e\\udd8a","index":0,"logprobs":null,"finish_reason":"length"}]}`,
    usage: usage(3, 2),
    model: "llama-3",
    finishReason: "length",
    id: "cmpl-7",
    hasError: false,
  },
  "embeddings as floats": {
    endpoint: "embeddings",
    text: `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[${floats(64)}, 1e5, -0, 1E-7]}],"model":"text-embedding-3-large","usage":{"prompt_tokens":8,"total_tokens":8}}`,
    usage: usage(8, 0),
    model: "text-embedding-3-large",
    finishReason: null,
    id: null,
    hasError: false,
  },
  "embeddings as base64": {
    endpoint: "embeddings",
    text: `{"object":"list","data":[{"object":"embedding","index":0,"embedding":"AACAPwAAAMA/+/8="},{"object":"embedding","index":1,"embedding":""}],"model":"voyage-4","usage":{"total_tokens":10}}`,
    usage: usage(10, 0),
    model: "voyage-4",
    finishReason: null,
    id: null,
    hasError: false,
  },
  responses: {
    endpoint: "responses",
    text: `{"id":"resp_1","object":"response","created_at":1763712000,"status":"incomplete","error":null,"incomplete_details":{"reason":"max_output_tokens"},"model":"gpt-5-mini","output":[{"id":"msg_1","type":"message","status":"incomplete","content":[{"type":"output_text","text":"Über alles","annotations":[]}],"role":"assistant"}],"usage":{"input_tokens":36,"input_tokens_details":{"cached_tokens":4},"output_tokens":87,"output_tokens_details":{"reasoning_tokens":60},"total_tokens":123},${DECOYS}}`,
    usage: usage(36, 87, { cachedTokens: 4, reasoningTokens: 60 }),
    model: "gpt-5-mini",
    finishReason: "max_output_tokens",
    id: "resp_1",
    hasError: false,
  },
  messages: {
    endpoint: "messages",
    text: `{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-5","content":[{"type":"text","text":"Hello — you!"},{"type":"tool_use","id":"toolu_1","name":"usage","input":{"usage":{}}}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":25,"cache_creation_input_tokens":7,"cache_read_input_tokens":5,"output_tokens":15,"service_tier":"standard"}}`,
    usage: usage(37, 15, { cachedTokens: 5, cacheWriteTokens: 7, serviceTier: "standard" }),
    model: "claude-sonnet-5",
    finishReason: "end_turn",
    id: "msg_1",
    hasError: false,
  },
};

export function factsOf({ usage, model, finishReason, id, hasError }: AnswerFacts): AnswerFacts {
  return { usage, model, finishReason, id, hasError };
}

/** An answer with 10,000 floats, some 200 KB. */
export const manyFloats = `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[${floats(10_000)}]}],"model":"e","usage":{"prompt_tokens":8,"total_tokens":8}}`;

/** Options with a price of 1 USD per thousand tokens. */
export function answerOptions(options: Partial<AnswerObserverOptions>): AnswerObserverOptions {
  return {
    endpoint: "chat",
    costUsdOf: ({ promptTokens, completionTokens }) => (promptTokens + completionTokens) / 1_000,
    ...options,
  };
}

export type PlayedJson = { sent: Uint8Array; outcome: ReturnType<AnswerObserver["end"]>["outcome"] };

/** Plays chunks through a tap. Each chunk's memory is overwritten once its turn is over, as a reader may do. */
export function playJson(chunks: readonly Uint8Array[], options: Partial<AnswerObserverOptions> = {}): PlayedJson {
  const tap = new AnswerObserver(answerOptions(options));
  const sent: Uint8Array[] = [];
  for (const chunk of chunks) {
    const lent = chunk.slice();
    sent.push(...tap.feed(lent).map((piece) => piece.slice()));
    lent.fill(0);
  }
  const { bytes, outcome } = tap.end();
  return { sent: joined([...sent, ...bytes]), outcome };
}
