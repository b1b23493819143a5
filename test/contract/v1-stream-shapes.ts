/** Streams as they are seen in the field, in the notation of v1-shapes.ts. */
import type { Shape } from "./v1-shapes.ts";

const raw = String.raw;

const USAGE_REQUESTED = raw`{"model":"⟦up/⟧up-1","stream":true,"messages":[],"stream_options":{"include_usage":true}}`;
const SILENT = raw`{"model":"⟦up/⟧up-1","stream":true,"messages":[]⟪,"stream_options":{"include_usage":true}⟫}`;

const HEAD = raw`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":12345678901234567890,"model":"up-1","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":null,"obfuscation":"aZ\/"}`;
const PIECE = raw`data: {"choices":[{"index":0,"delta":{"content":"h\u00e9 🦊 \"usage\":{"},"logprobs":null,"finish_reason":null}],"x":1.0e+2}`;
const LAST = raw`data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`;
const USAGE = raw`data: {"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15⟦,"cost":0.00002⟧}}`;
const DONE = "data: [DONE]";

const lines = (end: string, ...events: string[]): string => events.map((event) => event + end + end).join("");
/** The usage chunk that only the upstream's side has: it has no cost there. */
const injected = (end: string): string => `⟪${USAGE.replace(/⟦[^⟧]*⟧/, "")}${end}${end}⟫`;

const chat = (name: string, request: string, answer: string): Shape => ({
  name: `chat stream, ${name}`,
  path: "/v1/chat/completions",
  request,
  answer,
  events: true,
});

const chats: Shape[] = [
  chat("usage asked", USAGE_REQUESTED, lines("\n", HEAD, PIECE, PIECE, LAST, USAGE, DONE)),
  chat("usage injected", SILENT, lines("\n", HEAD, PIECE, LAST) + injected("\n") + lines("\n", DONE)),
  chat("CRLF", SILENT, lines("\r\n", HEAD, PIECE, LAST) + injected("\r\n") + lines("\r\n", DONE)),
  chat("CR alone", USAGE_REQUESTED, lines("\r", HEAD, PIECE, LAST, USAGE, DONE)),
  chat(
    "comments, names, ids, retry, no space behind the colon",
    SILENT,
    `: OPENROUTER PROCESSING\n\n:\n\nretry: 10\nid: 7\nevent: x\n${HEAD.replace("data: ", "data:")}\n\n\n\n${lines("\n", PIECE, LAST)}${injected("\n")}${DONE}\n\n: bye\n\n`,
  ),
  chat(
    "data of several lines",
    USAGE_REQUESTED,
    `data: {"choices":\ndata: [{"index":0,"delta":{"content":"a"}}]}\n\n${lines("\n", LAST, USAGE, DONE)}`,
  ),
  chat("a byte order mark", USAGE_REQUESTED, `\ufeff${lines("\n", HEAD, LAST, USAGE, DONE)}`),
  chat("no last blank line", USAGE_REQUESTED, `${lines("\n", HEAD, LAST, USAGE)}${DONE}`),
  chat("no [DONE]", USAGE_REQUESTED, lines("\n", HEAD, PIECE, LAST, USAGE)),
  chat(
    "usage with the last piece",
    SILENT,
    lines(
      "\n",
      HEAD,
      LAST.replace(/\}$/, raw`,"usage":{"prompt_tokens":10,"completion_tokens":5⟦,"cost":0.00002⟧}}`),
      DONE,
    ),
  ),
  chat("a router's cost", USAGE_REQUESTED, lines("\n", HEAD, LAST, USAGE.replace(/⟦[^⟧]*⟧/, ',"cost":1.95E-5'), DONE)),
  chat(
    "tools in pieces, two choices",
    raw`{"model":"⟦up/⟧up-1","n":2,"stream":true,"max_tokens":9,"messages":[],"stream_options":{⟪"include_usage":true⟫}}`,
    lines(
      "\n",
      raw`data: {"choices":[{"index":1,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"f","arguments":"{\"a"}}]}}]}`,
      raw`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\": 1.0}"}}]},"finish_reason":"tool_calls"},{"index":1,"delta":{},"finish_reason":"stop"}]}`,
    ) +
      injected("\n") +
      lines("\n", DONE),
  ),
  chat(
    "options of null, no usage",
    raw`{"model":"⟦up/⟧up-1","stream":true,"stream_options":⟦null⟧⟪{"include_usage":true}⟫,"messages":[]}`,
    lines("\n", HEAD, LAST, DONE),
  ),
  chat(
    "include_usage of false",
    raw`{"stream_options":{"include_usage":⟦false⟧⟪true⟫,"include_obfuscation":false},"stream":true,"model":"⟦up/⟧up-1","messages":[]}`,
    lines("\n", HEAD, LAST) + injected("\n") + lines("\n", DONE),
  ),
];

const EVENTS = [
  raw`event: response.created
data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","created_at":1.763712e9,"status":"in_progress","model":"up-1","output":[],"usage":null}}`,
  raw`event: response.output_item.added
data: {"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gA\/=="}}`,
  raw`event: response.output_text.delta
data: {"type":"response.output_text.delta","sequence_number":2,"item_id":"msg_1","output_index":1,"content_index":0,"delta":"h\u00e9 🦊","logprobs":[],"obfuscation":"x"}`,
  raw`event: response.some.future_event
data: {"type":"response.some.future_event","sequence_number":3,"x":12345678901234567890}`,
];
const COMPLETED = raw`event: response.completed
data: {"type":"response.completed","sequence_number":4,"response":{"id":"resp_1","status":"completed","model":"up-1","output":[{"type":"message","content":[{"type":"output_text","text":"h\u00e9"}]}],"usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":0},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":4},"total_tokens":15⟦,"cost":0.00002⟧},"metadata":{}}}`;

const ANTHROPIC = [
  raw`event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-1","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1}}}`,
  raw`event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
  raw`event: ping
data: {"type": "ping"}`,
  raw`event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"Eq\/=="}}`,
  raw`event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"n\": 1.0"}}`,
  raw`event: content_block_stop
data: {"type":"content_block_stop","index":1}`,
];
const STOP = raw`event: message_stop
data: {"type":"message_stop"}`;
const delta = (usage: string): string => raw`event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{${usage}⟦,"cost":0.00002⟧}}`;

const others: Shape[] = [
  {
    name: "completions stream",
    path: "/v1/completions",
    request: raw`{"model":"⟦up/⟧up-1","prompt":"a","stream":true,"max_tokens":5⟪,"stream_options":{"include_usage":true}⟫}`,
    answer:
      lines(
        "\n",
        raw`data: {"id":"cmpl-1","choices":[{"text":" \u00e9\n","index":0,"logprobs":null,"finish_reason":null}]}`,
        raw`data: {"choices":[{"text":"","index":0,"finish_reason":"length"}]}`,
      ) +
      injected("\n") +
      lines("\n", DONE),
  },
  {
    name: "responses stream",
    path: "/v1/responses",
    request: raw`{"model":"⟦up/⟧up-1","input":"a","stream":true,"max_output_tokens":50}`,
    answer: lines("\n", ...EVENTS, COMPLETED),
  },
  {
    name: "responses stream, CRLF, and a [DONE] that is none of the protocol's",
    path: "/v1/responses",
    request: raw`{"model":"⟦up/⟧up-1","input":"a","stream":true}`,
    answer: lines("\n", ...EVENTS, COMPLETED, DONE).replaceAll("\n", "\r\n"),
  },
  {
    name: "responses stream, failed",
    path: "/v1/responses",
    request: raw`{"model":"⟦up/⟧up-1","input":"a","stream":true}`,
    answer: lines(
      "\n",
      ...EVENTS,
      raw`event: response.failed
data: {"type":"response.failed","sequence_number":4,"response":{"id":"resp_1","status":"failed","error":{"code":"server_error","message":"m"},"usage":null}}`,
    ),
  },
  {
    name: "messages stream",
    path: "/v1/messages",
    request: raw`{"model":"⟦claude/⟧claude-1","max_tokens":50,"stream":true,"messages":[]}`,
    answer: lines("\n", ...ANTHROPIC, delta('"output_tokens":5'), STOP),
  },
  {
    name: "messages stream, all counts at its end",
    path: "/v1/messages",
    request: raw`{"model":"⟦claude/⟧claude-1","max_tokens":50,"stream":true,"messages":[]}`,
    answer: lines("\n", ...ANTHROPIC, delta('"input_tokens":10,"cache_read_input_tokens":0,"output_tokens":5'), STOP),
  },
].map((shape) => ({ ...shape, events: true }));

/** As they are edited where nothing passes. */
export const streams: readonly Shape[] = [...chats, ...others];

/** As they go to their clients where all passes that may: with its cost behind it. */
export const passedStreams: readonly Shape[] = streams.map(passed);

function passed(shape: Shape): Shape {
  const { path, request, answer } = shape;
  const passes = path === "/v1/responses" || path === "/v1/messages" || request === USAGE_REQUESTED;
  if (!passes) return shape;
  const cost = /"cost":([\d.E-]+)/.exec(answer)?.[1];
  if (cost === undefined) return shape;
  const whole = answer.replace(/⟦,"cost":[^⟧]*⟧/, "");
  const ends = /(\n\n|\r\r|\r\n\r\n)$/.test(whole) ? "" : "\n\n";
  const decimal = cost === "1.95E-5" ? "0.0000195" : cost;
  return { ...shape, answer: `${whole}⟦${ends}: fanout cost=${decimal}\n\n⟧` };
}
