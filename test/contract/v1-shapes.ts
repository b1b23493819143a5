/**
 * Requests and answers as they are seen in the field, byte for byte. What only the client has of them stands in ⟦ ⟧, what
 * only the upstream has in ⟪ ⟫: these are the exceptions that the contract lists, and all else is the same on both sides.
 */
export type Shape = {
  name: string;
  path: string;
  request: string;
  answer: string;
  /** An event stream. */
  events?: true;
  /** The run's budget, where one is clamped. */
  budget?: Record<string, number>;
};

/** What a side has of a text. */
export const clientSide = (text: string): string => text.replace(/⟪[^⟫]*⟫/g, "").replace(/[⟦⟧]/g, "");
export const upstreamSide = (text: string): string => text.replace(/⟦[^⟧]*⟧/g, "").replace(/[⟪⟫]/g, "");

const raw = String.raw;

/** 10 prompt tokens and 5 of the answer, $1 and $2 per million. */
const USAGE = raw`"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15⟦,"cost":0.00002⟧}`;
export const CHAT = raw`{"id":"chatcmpl-1","object":"chat.completion","created":1763712000,"model":"up-1-2026","choices":[{"index":0,"message":{"role":"assistant","content":"ok","refusal":null},"logprobs":null,"finish_reason":"stop"}],${USAGE}}`;
const ASK = raw`{"model":"⟦up/⟧up-1","messages":[{"role":"user","content":"hi"}]}`;

const chat = (name: string, request: string, answer = CHAT): Shape => ({
  name: `chat, ${name}`,
  path: "/v1/chat/completions",
  request,
  answer,
});

const chats: Shape[] = [
  chat("plain", ASK),
  chat("a plain name, nothing changed", '{"model":"up-1","messages":[]}'),
  chat("an escaped name", raw`{"model":"⟦up\/\u0075p-1⟧⟪up-1⟫","messages":[]}`),
  chat("a name with slashes", raw`{"model":"⟦once/⟧vendor/model:free","messages":[]}`),
  chat(
    "tools, all options",
    raw`{"model":"⟦up/⟧up-1","messages":[{"role":"system","content":"s"},{"role":"user","name":"u","content":"w?"},{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"get","arguments":"{\"city\": \"Zürich\"}"}}]},{"role":"tool","tool_call_id":"call_1","content":"[1,2]"}],"tools":[{"type":"function","function":{"name":"get","description":"d","strict":true,"parameters":{"type":"object","properties":{"city":{"type":"string","enum":["a","b"]}},"required":["city"],"additionalProperties":false}}}],"tool_choice":{"type":"function","function":{"name":"get"}},"parallel_tool_calls":false,"user":"u-1","seed":-9223372036854775808,"stop":["\n\n","END"],"logit_bias":{"50256":-100},"presence_penalty":0.10,"frequency_penalty":-2e0,"temperature":1.0,"top_p":0.900,"n":1,"service_tier":"auto"}`,
    raw`{"id":"chatcmpl-2","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"call_9","type":"function","function":{"name":"get","arguments":"{\"city\":\"Z\u00fcrich\",\"n\":12345678901234567890}"}}],"annotations":[]},"finish_reason":"tool_calls"}],${USAGE},"system_fingerprint":"fp_1"}`,
  ),
  chat(
    "images and sounds",
    raw`{"model":"⟦up/⟧up-1","max_tokens":100,"messages":[{"role":"user","content":[{"type":"text","text":"what?"},{"type":"image_url","image_url":{"url":"data:image\/png;base64,iVBORw0KGgo=","detail":"low"}},{"type":"input_audio","input_audio":{"data":"UklGRg==","format":"wav"}},{"type":"file","file":{"file_id":"file-1"}}]}]}`,
  ),
  chat(
    "structured outputs",
    raw`{"model":"⟦up/⟧up-1","messages":[{"role":"user","content":"j"}],"response_format":{"type":"json_schema","json_schema":{"name":"x","strict":true,"schema":{"$ref":"#/$defs/a","$defs":{"a":{"type":"object","properties":{"model":{"type":"string"},"usage":{"type":"null"}}}}}}}}`,
    raw`{"choices":[{"message":{"content":"{\"model\":\"up/up-1\",\"usage\":{\"prompt_tokens\":1}}"},"index":0,"finish_reason":"stop"}],${USAGE}}`,
  ),
  chat(
    "logprobs",
    raw`{"model":"⟦up/⟧up-1","messages":[],"logprobs":true,"top_logprobs":2}`,
    raw`{"choices":[{"index":0,"message":{"content":"}"},"logprobs":{"content":[{"token":"}","logprob":-1.50e-7,"bytes":[125],"top_logprobs":[{"token":"\u007d","logprob":-0.0,"bytes":null}]}],"refusal":[]},"finish_reason":"length"}],${USAGE}}`,
  ),
  chat(
    "unknown fields, big and odd numbers",
    raw`{"x_seed":12345678901234567890,"f":1.0e+2,"g":-0,"h":1E400,"i":0.1000000000000000055511151231257827,"model":"⟦up/⟧up-1","messages":[],"extra_body":{"é":[[],{},[{}]],"":null}}`,
    raw`{"created":12345678901234567890,"f":1.0e+2,"g":-0,"h":1E400,"choices":[],"nested":{"usage":{"prompt_tokens":7,"cost":1}},${USAGE},"":{"":""},"provider":"x"}`,
  ),
  chat(
    "odd order of keys",
    raw`{"messages":[{"content":"hi","role":"user"}],"zz":1,"model":"⟦up/⟧up-1","aa":2}`,
    raw`{${USAGE},"choices":[{"finish_reason":"stop","index":0,"message":{"content":"a","role":"assistant"}}],"model":"m","id":"z"}`,
  ),
  chat(
    "escapes, emoji, halves, separators of lines",
    raw`{"model":"⟦up/⟧up-1","messages":[{"role":"user","content":"\ud83e\udd8a 🦊 \u0000 \/ \\ \" \b\f\n\r\t ￿ 𝕏 é e\u0301 \ud800"}]}`,
    raw`{"choices":[{"index":0,"message":{"content":"\uD83E\uDD8A 👩‍👩‍👧‍👦 \u2028\u2029 \ud800 ﻿ \u001f"},"finish_reason":"stop"}],${USAGE}}`,
  ),
  chat(
    "raw separators of lines and other white space in texts",
    `{"model":"⟦up/⟧up-1","messages":[{"role":"user","content":"\u2028\u2029\u0085\u00a0\u3000\ufeff"}]}`,
    `{"choices":[{"message":{"content":"\u2028\u2029\u0085\u00a0\u3000\ufeff"}}],${USAGE}}`,
  ),
  chat(
    "CRLF, tabs, indents",
    `\r\n{\r\n\t"model" :\t"⟦up/⟧up-1" ,\r\n\t"messages"\r\n:\r\n[ ]\r\n}\r\n\r\n`,
    `\n\n \t{\r\n  "choices" : [ ] ,\r\n  "usage" : {\r\n    "prompt_tokens" : 10 ,\r\n    "completion_tokens" : 5⟦,"cost":0.00002⟧\r\n  }\r\n}\r\n \t\n`,
  ),
  chat("a clamped cap", raw`{"model":"⟦up/⟧up-1","max_tokens": ⟦9000⟧⟪64⟫ ,"messages":[]}`),
  chat("a cap below the clamp", raw`{"model":"⟦up/⟧up-1","max_tokens": 60 ,"messages":[]}`),
  chat("two caps", raw`{⟦"max_completion_tokens":9000,⟧"max_tokens":32,"model":"⟦up/⟧up-1","messages":[]}`),
  chat(
    "a cap in another spelling",
    raw`{"model":"⟦up/⟧up-1","messages":[]⟦,"max_completion_tokens":60⟧⟪,"max_tokens":60⟫}`,
  ),
  chat("no cap of the client's", raw`{"model":"⟦up/⟧up-1","messages":[]⟪,"max_tokens":64⟫}`),
  chat(
    "a router's cost",
    ASK,
    CHAT.replace('⟦,"cost":0.00002⟧', ',"cost":1.95E-5,"cost_details":{"upstream_inference_cost":null}'),
  ),
  chat("a cost of null", ASK, CHAT.replace('⟦,"cost":0.00002⟧', ',"cost":⟪null⟫⟦0.00002⟧')),
  chat(
    "details of its usage",
    ASK,
    CHAT.replace(
      '⟦,"cost"',
      ',"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":3}⟦,"cost"',
    ),
  ),
  chat("no usage", ASK, raw`{"choices":[{"index":0,"message":{"content":"a"},"finish_reason":"stop"}],"usage":null}`),
  chat(
    "several choices",
    raw`{"n":2,"model":"⟦up/⟧up-1","max_tokens":9,"messages":[]}`,
    raw`{"choices":[{"index":1,"message":{"content":"b"}},{"index":0,"message":{"content":"a"}}],${USAGE}}`,
  ),
  chat(
    "reasoning",
    ASK,
    raw`{"choices":[{"index":0,"message":{"content":"a","reasoning":"r","reasoning_details":[{"type":"reasoning.encrypted","data":"gAAA=="}],"reasoning_content":"r"},"native_finish_reason":"STOP","finish_reason":"stop"}],${USAGE}}`,
  ),
].map((shape) => (/\bcaps?\b/.test(shape.name) ? { ...shape, budget: { completion_tokens: 64 } } : shape));

const others: Shape[] = [
  {
    name: "completions, all options",
    path: "/v1/completions",
    request: raw`{"model":"⟦up/⟧up-1","prompt":["a","b\n"],"max_tokens":7,"echo":true,"logprobs":3,"suffix":null,"best_of":1,"x":1.0}`,
    answer: raw`{"id":"cmpl-1","object":"text_completion","choices":[{"text":"\n\n…","index":0,"logprobs":{"tokens":["a"],"token_logprobs":[null],"top_logprobs":[{}],"text_offset":[0]},"finish_reason":"length"}],${USAGE}}`,
  },
  {
    name: "completions, token numbers",
    path: "/v1/completions",
    request: raw`{"prompt":[[1, 22,333]],"model":"⟦up/⟧up-1"}`,
    answer: raw`{"choices":[{"text":"a","index":0}],${USAGE}}`,
  },
  {
    name: "embeddings, floats",
    path: "/v1/embeddings",
    request: raw`{"input":["a","é"],"model":"⟦up/⟧up-1","encoding_format":"float","dimensions":3}`,
    answer: raw`{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.10, -1e-7,1E5,-0,0.000]},{"object":"embedding","embedding":[],"index":1}],"model":"m","usage":{"prompt_tokens":10,"total_tokens":10⟦,"cost":0.00001⟧}}`,
  },
  {
    name: "embeddings, base64",
    path: "/v1/embeddings",
    request: raw`{"input":"a","model":"⟦up/⟧up-1","encoding_format":"base64"}`,
    answer: raw`{"object":"list","data":[{"object":"embedding","index":0,"embedding":"AACAPwAAIMA\u003d"}],"usage":{"total_tokens":10,"prompt_tokens":10⟦,"cost":0.00001⟧}}`,
  },
  {
    name: "embeddings, base64 of floats",
    path: "/v1/embeddings",
    request: raw`{"input":"a","model":"⟦up/⟧up-1","encoding_format":"base64"}`,
    answer: raw`{"data":[{"embedding":⟪[1, -2.5]⟫⟦"AACAPwAAIMA="⟧,"index":0 } ],"usage":{"prompt_tokens":10,"total_tokens":10⟦,"cost":0.00001⟧}}`,
  },
  {
    name: "responses, reasoning items, tools, state",
    path: "/v1/responses",
    request: raw`{"model":"⟦up/⟧up-1","instructions":"i","input":[{"role":"user","content":[{"type":"input_text","text":"t"}]},{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAAA=="},{"type":"function_call","call_id":"c","name":"f","arguments":"{\"a\":1.0}"},{"type":"function_call_output","call_id":"c","output":"ok"}],"reasoning":{"effort":"low","summary":"auto"},"include":["reasoning.encrypted_content"],"store":false,"text":{"format":{"type":"text"},"verbosity":"low"},"tools":[{"type":"function","name":"f","parameters":{},"strict":null}],"metadata":{},"max_output_tokens":500,"truncation":"disabled"}`,
    answer: raw`{"id":"resp_1","object":"response","status":"completed","error":null,"incomplete_details":null,"output":[{"id":"rs_2","type":"reasoning","summary":[],"encrypted_content":"gAAAAAB\/x=="},{"id":"msg_1","type":"message","status":"completed","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"\"usage\":{"}],"role":"assistant"}],"usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":0},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":4},"total_tokens":15⟦,"cost":0.00002⟧},"user":null,"created_at":1.763712e9}`,
  },
  {
    name: "responses, a plain text, incomplete",
    path: "/v1/responses",
    request: raw`{"input":"hi","model":"⟦up/⟧up-1"}`,
    answer: raw`{"id":"resp_2","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[],"usage":{"total_tokens":15,"output_tokens":5,"input_tokens":10⟦,"cost":0.00002⟧}}`,
  },
  {
    name: "responses, a clamped cap",
    path: "/v1/responses",
    request: raw`{"input":"hi","model":"⟦up/⟧up-1","max_output_tokens":⟦800⟧⟪64⟫}`,
    answer: raw`{"id":"resp_3","status":"completed","usage":{"input_tokens":10,"output_tokens":5⟦,"cost":0.00002⟧}}`,
    budget: { completion_tokens: 64 },
  },
  {
    name: "messages, thinking, cache_control, tools, documents",
    path: "/v1/messages",
    request: raw`{"model":"⟦claude/⟧claude-1","max_tokens":2048,"thinking":{"type":"enabled","budget_tokens":1024},"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":[{"type":"document","source":{"type":"base64","media_type":"application\/pdf","data":"JVBERi0="},"title":"é","citations":{"enabled":true}},{"type":"text","text":"?"}]},{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"Eq=="},{"type":"tool_use","id":"toolu_1","name":"f","input":{"n":1.0,"big":12345678901234567890}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"r"}],"is_error":false}]}],"tools":[{"name":"f","input_schema":{"type":"object"}}],"metadata":{"user_id":"u"},"stop_sequences":["\n\nHuman:"]}`,
    answer: raw`{"id":"msg_1","type":"message","role":"assistant","model":"claude-1","content":[{"type":"thinking","thinking":"h\u00e9","signature":"Eq\/=="},{"type":"tool_use","id":"toolu_2","name":"f","input":{"n":1.0}},{"type":"text","text":"a","citations":[]}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":10,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":5,"service_tier":"standard"⟦,"cost":0.00002⟧},"container":null}`,
  },
  {
    name: "messages, a plain name",
    path: "/v1/messages",
    request: raw`{ "messages" : [ ] , "max_tokens" : 5 , "model" : "claude-1" }`,
    answer: raw`{"usage":{"output_tokens":5,"input_tokens":10⟦,"cost":0.00002⟧},"stop_reason":"max_tokens","content":[]}`,
  },
  {
    name: "messages, images",
    path: "/v1/messages",
    request: raw`{"model":"⟦claude/⟧claude-1","max_tokens":9,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}]}]}`,
    answer: raw`{"content":[{"type":"text","text":"🖼️"}],"usage":{"input_tokens":10,"output_tokens":5⟦,"cost":0.00002⟧}}`,
  },
];

/** Bodies that are one JSON text. */
export const bodies: readonly Shape[] = [...chats, ...others];
