/**
 * Providers by how they write a message that has more than text: the body that each sends as JSON, byte for byte, and the events of
 * the same answer as a stream. Shapes of their public documentation and of recorded answers.
 */
export type Speaker = {
  name: string;
  kind: "openai" | "anthropic";
  /** The message as the provider writes it; of Anthropic the list of its blocks. */
  message: string;
  body: string;
  /** The events of the stream: names where the protocol has some, and data. */
  events: readonly (readonly [event: string | null, data: string])[];
};

const raw = String.raw;

/** Arguments whose number JavaScript cannot hold, and whose keys would change their order if they were parsed. */
export const ARGUMENTS = raw`{"zip": "08001", "id": 12345678901234567890, "2": "two", "1": [1.0, -0.0, "\u00fc"]}`;
const ARGUMENTS_TEXT = JSON.stringify(ARGUMENTS);
const [HEAD, TAIL] = [JSON.stringify(ARGUMENTS.slice(0, 20)), JSON.stringify(ARGUMENTS.slice(20))];
const ONE_CALL = raw`{"id":"call_1","type":"function","function":{"name":"lookup","arguments":${ARGUMENTS_TEXT}}}`;
const OTHER_CALL = raw`{"id":"call_2","type":"function","function":{"name":"now","arguments":"{}"}}`;

const USAGE = raw`{"prompt_tokens":82,"completion_tokens":31,"total_tokens":113,"prompt_tokens_details":{"cached_tokens":64},"completion_tokens_details":{"reasoning_tokens":12}}`;

type Chat = Pick<Speaker, "name" | "message"> & {
  deltas: readonly string[];
  finish: string;
  /** Further members of the choice. */
  choice?: string;
  head?: string;
};

/** A provider of OpenAI's protocol. */
function chat({ name, message, deltas, finish, choice = "", head = "" }: Chat): Speaker {
  const id = raw`"id":"chatcmpl-${name}","created":1763712000,"model":"m-2026"${head}`;
  const body = raw`{${id},"object":"chat.completion","choices":[{"index":0,"message":${message},"finish_reason":"${finish}"${choice}}],"usage":${USAGE}}`;
  const chunk = (choices: string, usage = ""): [null, string] => [
    null,
    raw`{${id},"object":"chat.completion.chunk","choices":${choices}${usage}}`,
  ];
  return {
    name,
    kind: "openai",
    message,
    body,
    events: [
      ...deltas.map((delta) => chunk(raw`[{"index":0,"delta":${delta},"finish_reason":null}]`)),
      chunk(raw`[{"index":0,"delta":{},"finish_reason":"${finish}"${choice}}]`),
      chunk("[]", raw`,"usage":${USAGE}`),
      [null, "[DONE]"],
    ],
  };
}

/** The deltas of both calls: names and ids first, then the arguments in two pieces. */
const CALL_DELTAS = [
  raw`{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"lookup","arguments":""}}]}`,
  raw`{"tool_calls":[{"index":0,"function":{"arguments":${HEAD}}}]}`,
  raw`{"tool_calls":[{"index":0,"function":{"arguments":${TAIL}}}]}`,
  raw`{"tool_calls":[{"index":1,"id":"call_2","type":"function","function":{"name":"now","arguments":"{}"}}]}`,
];

const THINKING = raw`{"type":"thinking","thinking":"Two steps: look up, then answer.","signature":"EqQBCgIYAhIM1gbcDa9GJwZA2b3h=="}`;
const REDACTED = raw`{"type":"redacted_thinking","data":"EmwKAhgBEgy3va3pzix/LafPsn4a"}`;
const CITATION = raw`{"type":"char_location","cited_text":"The grass is green.","document_index":0,"document_title":"Nature","start_char_index":0,"end_char_index":20}`;
const WEB = raw`{"type":"web_search_result_location","cited_text":"Claude Shannon was born in 1916","url":"https://example.org/shannon","title":"Shannon","encrypted_index":"Eo8BCioIAhgBIiQyYjQ0"}`;

/** An Anthropic message. A stream sends each block's beginning, its deltas and its end. */
function anthropic(
  name: string,
  stop: string,
  blocks: readonly { block: string; start: string; deltas: string[] }[],
): Speaker {
  const message = `[${blocks.map(({ block }) => block).join(",")}]`;
  const head = raw`"id":"msg_${name}","type":"message","role":"assistant","model":"claude-2026"`;
  const usage = raw`{"input_tokens":18,"cache_read_input_tokens":64,"output_tokens":31,"output_tokens_details":{"thinking_tokens":12}}`;
  return {
    name,
    kind: "anthropic",
    message,
    body: raw`{${head},"content":${message},"stop_reason":"${stop}","stop_sequence":null,"usage":${usage}}`,
    events: [
      [
        "message_start",
        raw`{"type":"message_start","message":{${head},"content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":18,"cache_read_input_tokens":64,"output_tokens":1}}}`,
      ],
      ...blocks.flatMap(({ start, deltas }, at): [string, string][] => [
        ["content_block_start", raw`{"type":"content_block_start","index":${at},"content_block":${start}}`],
        ...deltas.map((delta): [string, string] => [
          "content_block_delta",
          raw`{"type":"content_block_delta","index":${at},"delta":${delta}}`,
        ]),
        ["content_block_stop", raw`{"type":"content_block_stop","index":${at}}`],
      ]),
      [
        "message_delta",
        raw`{"type":"message_delta","delta":{"stop_reason":"${stop}","stop_sequence":null},"usage":{"output_tokens":31,"output_tokens_details":{"thinking_tokens":12}}}`,
      ],
      ["message_stop", raw`{"type":"message_stop"}`],
    ],
  };
}

const THOUGHTS = [
  {
    block: THINKING,
    start: raw`{"type":"thinking","thinking":"","signature":""}`,
    deltas: [
      raw`{"type":"thinking_delta","thinking":"Two steps: "}`,
      raw`{"type":"thinking_delta","thinking":"look up, then answer."}`,
      raw`{"type":"signature_delta","signature":"EqQBCgIYAhIM1gbcDa9GJwZA2b3h=="}`,
    ],
  },
  { block: REDACTED, start: REDACTED, deltas: [] },
];

const textBlock = (text: string, citations: string[] = []) => {
  const cited = citations.length === 0 ? "" : raw`,"citations":[${citations.join(",")}]`;
  return {
    block: raw`{"type":"text","text":${JSON.stringify(text)}${cited}}`,
    start: raw`{"type":"text","text":""${citations.length === 0 ? "" : raw`,"citations":[]`}}`,
    deltas: [
      ...citations.map((citation) => raw`{"type":"citations_delta","citation":${citation}}`),
      raw`{"type":"text_delta","text":${JSON.stringify(text)}}`,
    ],
  };
};

const TOOL_USE = {
  block: raw`{"type":"tool_use","id":"toolu_1","name":"lookup","input":${ARGUMENTS}}`,
  start: raw`{"type":"tool_use","id":"toolu_1","name":"lookup","input":{}}`,
  deltas: [
    raw`{"type":"input_json_delta","partial_json":""}`,
    raw`{"type":"input_json_delta","partial_json":${HEAD}}`,
    raw`{"type":"input_json_delta","partial_json":${TAIL}}`,
  ],
};

const SEARCHED = raw`{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"shannon"}}`;
const FOUND = raw`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https://example.org/shannon","title":"Shannon","encrypted_content":"EqgfCioIARgBIiQ3YTAwMjY1","page_age":null}]}`;

/** Log probabilities whose numbers would be written in another way if they were parsed. */
export const LOGPROBS = raw`{"content":[{"token":"b","logprob":-1.50e-7,"bytes":[98],"top_logprobs":[]}],"refusal":null}`;

export const SPEAKERS: readonly Speaker[] = [
  chat({
    name: "openai",
    message: raw`{"role":"assistant","content":null,"tool_calls":[${ONE_CALL},${OTHER_CALL}],"refusal":null,"annotations":[]}`,
    deltas: [raw`{"role":"assistant","content":null,"refusal":null}`, ...CALL_DELTAS],
    finish: "tool_calls",
    choice: raw`,"logprobs":null`,
  }),
  chat({
    name: "openai-search",
    message: raw`{"role":"assistant","content":"Green [1].","refusal":null,"annotations":[{"type":"url_citation","url_citation":{"start_index":6,"end_index":9,"title":"Nature","url":"https://example.org/n"}}]}`,
    deltas: [
      raw`{"role":"assistant","content":"","refusal":null}`,
      raw`{"content":"Green "}`,
      raw`{"content":"[1]."}`,
      raw`{"annotations":[{"type":"url_citation","url_citation":{"start_index":6,"end_index":9,"title":"Nature","url":"https://example.org/n"}}]}`,
    ],
    finish: "stop",
  }),
  chat({
    name: "azure",
    message: raw`{"role":"assistant","content":null,"refusal":"I cannot help with that.","annotations":[]}`,
    deltas: [
      raw`{"role":"assistant","content":null,"refusal":""}`,
      raw`{"refusal":"I cannot help"}`,
      raw`{"refusal":" with that."}`,
    ],
    finish: "stop",
    choice: raw`,"content_filter_results":{"hate":{"filtered":false,"severity":"safe"}}`,
    head: raw`,"prompt_filter_results":[{"prompt_index":0,"content_filter_results":{"hate":{"filtered":false,"severity":"safe"}}}]`,
  }),
  chat({
    name: "vllm",
    message: raw`{"role":"assistant","content":"It is 4.","refusal":null,"annotations":null,"audio":null,"function_call":null,"tool_calls":[],"reasoning":"2 + 2","reasoning_content":"2 + 2"}`,
    deltas: [
      raw`{"role":"assistant","content":""}`,
      raw`{"reasoning":"2 ","reasoning_content":"2 "}`,
      raw`{"reasoning":"+ 2","reasoning_content":"+ 2"}`,
      raw`{"content":"It is"}`,
      raw`{"content":" 4."}`,
    ],
    finish: "stop",
    choice: raw`,"logprobs":null,"stop_reason":null`,
  }),
  chat({
    name: "deepseek",
    message: raw`{"role":"assistant","content":"","reasoning_content":"I must look it up.","tool_calls":[${ONE_CALL},${OTHER_CALL}]}`,
    deltas: [
      raw`{"role":"assistant","content":null,"reasoning_content":""}`,
      raw`{"content":null,"reasoning_content":"I must "}`,
      raw`{"content":null,"reasoning_content":"look it up."}`,
      raw`{"content":"","reasoning_content":null}`,
      ...CALL_DELTAS,
    ],
    finish: "tool_calls",
    choice: raw`,"logprobs":null`,
  }),
  chat({
    name: "openrouter",
    message: raw`{"role":"assistant","content":null,"refusal":null,"reasoning":"Let me compute 17 * 23.","reasoning_details":[{"type":"reasoning.text","text":"Let me compute 17 * 23.","signature":"Et8BCmUIDxgC","format":"anthropic-claude-v1","index":0},{"type":"reasoning.encrypted","data":"gAAAAABo","id":"rs_1","format":"openai-responses-v1","index":1}],"tool_calls":[${ONE_CALL},${OTHER_CALL}]}`,
    deltas: [
      raw`{"role":"assistant","content":"","reasoning":"Let","reasoning_details":[{"type":"reasoning.text","text":"Let","format":"anthropic-claude-v1","index":0}]}`,
      raw`{"role":"assistant","content":"","reasoning":" me compute 17 * 23.","reasoning_details":[{"type":"reasoning.text","text":" me compute 17 * 23.","format":"anthropic-claude-v1","index":0}]}`,
      raw`{"role":"assistant","content":"","reasoning_details":[{"type":"reasoning.text","signature":"Et8BCmUIDxgC","format":"anthropic-claude-v1","index":0}]}`,
      raw`{"role":"assistant","content":"","reasoning_details":[{"type":"reasoning.encrypted","data":"gAAAAABo","id":"rs_1","format":"openai-responses-v1","index":1}]}`,
      ...CALL_DELTAS,
    ],
    finish: "tool_calls",
    choice: raw`,"native_finish_reason":"tool_use"`,
    head: raw`,"provider":"Anthropic"`,
  }),
  chat({
    name: "audio",
    message: raw`{"role":"assistant","content":null,"refusal":null,"audio":{"id":"audio_1","expires_at":1763715600,"data":"UklGRg==","transcript":"Hello."}}`,
    deltas: [
      raw`{"role":"assistant","content":null,"refusal":null,"audio":{"id":"audio_1","transcript":"Hel"}}`,
      raw`{"audio":{"transcript":"lo."}}`,
      raw`{"audio":{"data":"UklGRg=="}}`,
      raw`{"audio":{"expires_at":1763715600}}`,
    ],
    finish: "stop",
  }),
  chat({
    name: "scored",
    message: raw`{"role":"assistant","content":"b","reasoning_content":"a or b"}`,
    deltas: [raw`{"role":"assistant","content":"b","reasoning_content":"a or b"}`],
    finish: "stop",
    choice: raw`,"logprobs":${LOGPROBS}`,
  }),
  anthropic("claude", "tool_use", [...THOUGHTS, textBlock("I look it up."), TOOL_USE]),
  anthropic("claude-bare", "tool_use", [TOOL_USE]),
  anthropic("claude-cites", "end_turn", [textBlock("Grass is "), textBlock("green", [CITATION]), textBlock(".")]),
  anthropic("claude-search", "end_turn", [
    {
      block: SEARCHED,
      start: raw`{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}`,
      deltas: [raw`{"type":"input_json_delta","partial_json":"{\"query\":\"shannon\"}"}`],
    },
    { block: FOUND, start: FOUND, deltas: [] },
    textBlock("He was born in 1916", [WEB]),
  ]),
];

/** The events as bytes on the wire. */
export function wireOf({ events }: Speaker): string {
  return events.map(([event, data]) => `${event === null ? "" : `event: ${event}\n`}data: ${data}\n\n`).join("");
}
