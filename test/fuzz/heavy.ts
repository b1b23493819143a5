/** Bodies that are as much work as their bytes allow: one shape of JSON in each place of each route, and settings that many calls inherit. */

/** What fills a body, as the members of an object and as the elements of a list. */
type Filling = { members: string; elements: string };

/** So many copies of a text that they have the bytes, with the copy's number in place of `#`. */
function copies(unit: string, bytes: number): string {
  const parts: string[] = [];
  for (let at = 0, length = 0; length < bytes; at++) {
    const part = unit.replaceAll("#", String(at));
    parts.push(part);
    length += part.length + 1;
  }
  return parts.join(",");
}

/** By what a parser, a scanner or a schema may do with it. */
const SHAPES: Readonly<Record<string, (bytes: number) => Filling>> = {
  names: (bytes) => ({ members: copies('"k#":1', bytes), elements: copies('{"k#":1}', bytes) }),
  brackets: (bytes) => ({ members: `"a":[${copies("[]", bytes)}]`, elements: copies("[]", bytes) }),
  numbers: (bytes) => ({ members: `"a":[${copies("1", bytes)}]`, elements: copies("1e3", bytes) }),
  texts: (bytes) => ({ members: `"a":[${copies('"a"', bytes)}]`, elements: copies('"a"', bytes) }),
  messages: (bytes) => ({
    members: `"a":[${copies('{"role":"user","content":[{"type":"text","text":"a"}]}', bytes)}]`,
    elements: copies('{"role":"user","content":"a","u#":1}', bytes),
  }),
  escapes: (bytes) => ({
    members: `"a":"${"\\u0344".repeat(bytes / 6)}"`,
    elements: `"${"\\u0344".repeat(bytes / 6)}"`,
  }),
  words: (bytes) => ({ members: `"a":"${"fox ".repeat(bytes / 4)}"`, elements: `"${"fox ".repeat(bytes / 4)}"` }),
};

/** The places of each route that a client fills as it likes. */
const PLACES: Readonly<Record<string, readonly ((filling: Filling) => string)[]>> = {
  "/query": [
    ({ members }) => `{"prompt":"a",${members}}`,
    ({ members }) => `{"prompt":"a","params":{${members}}}`,
    ({ members }) => `{"prompt":"a","schema":{${members}}}`,
    ({ elements }) => `{"messages":[${elements}]}`,
    ({ elements }) => `{"prompt":"a","params":{"tools":[${elements}]}}`,
  ],
  "/batch?quote=1": [
    ({ members }) => `{"prompts":["a"],${members}}`,
    ({ elements }) => `{"prompts":[${elements}]}`,
    ({ elements }) => `{"items":[${elements}]}`,
    ({ members }) => `{"items":[{"prompt":"a",${members}}]}`,
  ],
  "/dag/validate": [
    ({ elements }) => `{"tasks":[${elements}]}`,
    ({ members }) => `{"tasks":[],"dependencies":{${members}}}`,
  ],
  "/plan": [({ members }) => `{"goal":"a",${members}}`],
  "/log": [({ elements }) => `[${elements}]`, ({ members }) => `{"event_type":"a",${members}}`],
  "/mcp": [({ members }) => `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{${members}}}`],
  "/llm_query": [({ members }) => `{"prompt":"a",${members}}`],
  "/llm_query_batched": [({ elements }) => `{"prompts":[${elements}]}`],
  "/tool_call": [({ members }) => `{"name":"a","arguments":{${members}}}`],
  "/v1/chat/completions": [
    ({ members }) => `{"model":"up/m","messages":[],${members}}`,
    ({ elements }) => `{"model":"up/m","messages":[${elements}]}`,
    ({ elements }) => `{"model":"up/m","messages":[{"role":"user","content":[${elements}]}]}`,
    ({ elements }) => `{"model":"up/m","messages":[],"tools":[${elements}]}`,
  ],
  "/v1/responses": [({ elements }) => `{"model":"up/m","input":[${elements}]}`],
  "/v1/embeddings": [({ elements }) => `{"model":"up/m","input":[${elements}]}`],
  "/v1/messages": [({ elements }) => `{"model":"up/m","max_tokens":1,"messages":[${elements}]}`],
};

/** Settings of half a megabyte that many calls inherit. */
const SHARED: Readonly<Record<string, (text: string) => [path: string, body: object]>> = {
  "params under items": (stop) => [
    "/batch?quote=1",
    { params: { stop }, items: numbered(2_000, (seed) => ({ prompt: "a", params: { seed } })) },
  ],
  "params under tasks": (stop) => [
    "/dag?quote=1",
    { params: { stop }, tasks: numbered(1_000, (seed) => ({ id: `t${seed}`, prompt: "a", params: { seed } })) },
  ],
  "messages of agents": (content) => [
    "/batch?quote=1",
    { messages: [{ role: "user", content }], agents: numbered(100, (at) => ({ id: `a${at}` })) },
  ],
  "a system message": (system) => ["/batch?quote=1", { system, prompts: numbered(2_000, String), dedupe: true }],
};

function numbered<T>(count: number, of: (at: number) => T): T[] {
  return Array.from({ length: count }, (_, at) => of(at));
}

export type HeavyRequest = { what: string; path: string; body: string };

/** Every shape in every place, and the shared settings. `bytes`: of what fills a place. */
export function* heavyRequests(bytes: number): Generator<HeavyRequest> {
  for (const [path, places] of Object.entries(PLACES)) {
    for (const [shape, fill] of Object.entries(SHAPES)) {
      for (const [at, place] of places.entries()) {
        yield { what: `${shape} in place ${at} of ${path}`, path, body: place(fill(bytes)) };
      }
    }
  }
  for (const [what, make] of Object.entries(SHARED)) {
    const [path, body] = make("the quick brown fox ".repeat(25_000));
    yield { what, path, body: JSON.stringify(body) };
  }
}
