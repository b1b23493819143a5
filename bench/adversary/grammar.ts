/** The seeded grammar of hostile requests: what a program could send, and what somebody sends who looks for a hole. */
import type { Family } from "./bill.ts";
import { addForeign, foreignHeaders } from "./foreign.ts";
import {
  find,
  memberOf,
  nameOf,
  objectOf,
  objectsIn,
  raw,
  treeOf,
  write,
  type Member,
  type ObjectTree,
  type Tree,
} from "./json-text.ts";
import { markerOf } from "./mock.ts";
import { modelsOf, type Personality } from "./personalities.ts";
import { DETAILS, pictureIn, sourceOf } from "./pictures.ts";
import type { Random } from "./random.ts";
import { textIn, type Mood } from "./texts.ts";

/** One HTTP request; `calls` is the number of LLM calls in it. */
export type HostileRequest = {
  path: string;
  text: string;
  tree: ObjectTree;
  calls: number;
  /** The client leaves then; null = never. */
  leavesAfterMs: number | null;
  headers?: Record<string, string>;
};

export type Scene = {
  personality: Personality;
  run: number;
  /** Hands out the numbers of requests, which mark them. */
  next: () => number;
  mood: Mood;
  random: Random;
  /** Share of requests that are bent in some way. */
  malice: number;
  /** Share of requests with something that is foreign to its place; absent = none. */
  foreign?: number;
};

const V1: Record<Family, string> = {
  chat: "/v1/chat/completions",
  completions: "/v1/completions",
  responses: "/v1/responses",
  messages: "/v1/messages",
  embeddings: "/v1/embeddings",
};
const CAPS: Record<Family, string> = {
  chat: "max_tokens",
  completions: "max_tokens",
  responses: "max_output_tokens",
  messages: "max_tokens",
  embeddings: "max_tokens",
};

type Way = "v1" | "query" | "batch" | "items" | "dialect" | "dialect-batch";
const WAYS = [
  ["v1", 55],
  ["query", 20],
  ["batch", 5],
  ["items", 5],
  ["dialect", 10],
  ["dialect-batch", 5],
] as const satisfies readonly (readonly [Way, number])[];

const ITEMS_MAX = 8;

export function drawRequest(scene: Scene): HostileRequest {
  const { random } = scene;
  const way = random.weighted(WAYS);
  const leavesAfterMs = random.chance(0.04) ? random.integer(1, 60) : null;
  const request = way === "v1" ? v1Request(scene, familyOf(scene)) : nativeRequest(scene, way);
  if (!random.chance(scene.foreign ?? 0)) return { ...request, leavesAfterMs };
  addForeign(random, request.tree);
  return { ...request, text: write(request.tree), headers: foreignHeaders(random), leavesAfterMs };
}

/** A body for a line of a batch file. */
export function drawLine(scene: Scene, family: Family): ObjectTree {
  const body = v1Body(scene, family);
  if (scene.random.chance(scene.foreign ?? 0)) addForeign(scene.random, body);
  // Lines cannot stream: the batch would be refused whole.
  if (!scene.random.chance(0.01)) body.members = body.members.filter((member) => !/^stream/i.test(nameOf(member)));
  return body;
}

function familyOf({ personality, random }: Scene): Family {
  if (personality.kind === "anthropic") return "messages";
  return random.weighted([
    ["chat", 60],
    ["completions", 15],
    ["responses", 18],
    ["embeddings", 7],
  ]);
}

function v1Request(scene: Scene, family: Family): Omit<HostileRequest, "leavesAfterMs"> {
  const tree = v1Body(scene, family);
  return { path: V1[family], text: write(tree), tree, calls: 1 };
}

function v1Body(scene: Scene, family: Family): ObjectTree {
  const { random } = scene;
  const marker = markerOf(scene.run, scene.next());
  const body = objectOf({ model: modelOf(scene) });
  body.members.push(...contentOf(scene, family, marker));
  if (family !== "embeddings" && random.chance(family === "messages" ? 0.95 : 0.75)) {
    body.members.push({ key: JSON.stringify(CAPS[family]), value: capValue(random, 0.08) });
  }
  if (random.chance(0.3)) body.members.push(...random.pick(HARMLESS(random)));
  if (family !== "embeddings" && random.chance(0.25)) body.members.push(memberOf("stream", true));
  if (family !== "embeddings" && random.chance(0.2)) body.members.push(...toolMembers(scene, family));
  bend(scene, body, family);
  return body;
}

function modelOf({ personality, random }: Scene): string {
  const [usual = "m", dear = usual] = modelsOf(personality);
  return `${personality.name}/${random.chance(0.05) ? dear : usual}`;
}

function size(random: Random): number {
  if (random.chance(0.02)) return random.integer(4_000, 20_000);
  return random.chance(0.6) ? random.integer(1, 120) : random.integer(100, 2_500);
}

function contentOf(scene: Scene, family: Family, marker: string): Member[] {
  const { random, mood } = scene;
  const text = `${marker} ${textIn(mood, size(random), random)}`;
  switch (family) {
    case "completions":
      return [memberOf("prompt", random.chance(0.2) ? [text, "two", textIn(mood, size(random), random)] : text)];
    case "embeddings":
      return [memberOf("input", random.chance(0.4) ? [text, textIn(mood, size(random), random)] : text)];
    case "responses":
      return [memberOf("input", random.chance(0.5) ? text : conversation(scene, text, "responses"))];
    default: {
      const system = random.chance(0.2) ? textIn(mood, size(random), random) : null;
      const messages = [memberOf("messages", conversation(scene, text, family))];
      return system !== null && family === "messages" ? [memberOf("system", system), ...messages] : messages;
    }
  }
}

function conversation(scene: Scene, text: string, family: Family): unknown[] {
  const { random, mood } = scene;
  const user = { role: "user", content: random.chance(0.7) ? text : partsOf(scene, text, family) };
  const earlier: unknown[] = [];
  for (let turns = random.chance(0.25) ? random.integer(1, 6) : 0; turns > 0; turns -= 1) {
    earlier.push(
      { role: "user", content: textIn(mood, random.integer(1, 60), random) },
      { role: "assistant", content: "Yes." },
    );
  }
  if (family === "chat" && random.chance(0.2)) {
    const args = JSON.stringify({ q: textIn(mood, 80, random) });
    const call = { id: "c1", type: "function", function: { name: "look", arguments: args } };
    earlier.push({ role: "assistant", content: null, tool_calls: [call] });
    const seen = scene.personality.sees !== undefined && random.chance(0.5) ? [openaiImage(scene)] : null;
    earlier.push({ role: "tool", tool_call_id: "c1", content: seen ?? textIn(mood, 100, random) });
  }
  return [...earlier, user];
}

const PIXEL = "data:image/png;base64,iVBORw0KGgo=";

/** An image for an upstream that looks at images, or one for those that count them. */
function imageUrl({ personality: { sees, isLiedTo }, random }: Scene): string {
  return sees === undefined ? PIXEL : pictureIn(random, isLiedTo === true);
}

function openaiImage(scene: Scene): unknown {
  const detail = scene.personality.sees === undefined ? {} : scene.random.pick(DETAILS);
  return { type: "image_url", image_url: { url: imageUrl(scene), ...detail } };
}

function partsOf(scene: Scene, text: string, family: Family): unknown[] {
  const { random } = scene;
  const type = family === "responses" ? "input_text" : "text";
  const parts: unknown[] = [{ type, text }];
  for (let more = random.integer(0, 3); more > 0; more -= 1) {
    const part = family === "messages" ? anthropicPart(scene) : openaiPart(scene, type);
    parts.push(part);
  }
  return parts;
}

function openaiPart(scene: Scene, type: string): unknown {
  const { random, mood, personality } = scene;
  if (personality.sees !== undefined && random.chance(0.6)) {
    if (type === "text") return openaiImage(scene);
    return { type: "input_image", image_url: imageUrl(scene), ...random.pick(DETAILS) };
  }
  const text = () => textIn(mood, random.integer(1, 300), random);
  return random.pick<() => unknown>([
    () => ({ type, text: text() }),
    () => ({ type: "image_url", image_url: { url: PIXEL } }),
    () => ({ type: "image_url", image_url: PIXEL }),
    () => ({ type: "input_image", image_url: PIXEL }),
    () => ({ type: "input_audio", input_audio: { data: "UklGRg==", format: "wav" } }),
    () => ({ type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,JVBERi0=" } }),
    () => ({ type: "file", file: { file_id: "file-1" } }),
    () => ({ type: "input_file", file_id: "file-1" }),
    () => ({ type: "document_url", document_url: "https://papers.example/a.pdf" }),
    () => ({ type: "video_url", video_url: { url: "https://films.example/a.mp4" } }),
    () => ({ type, text: "as text", image_url: { url: PIXEL } }),
    () => ({ text: text() }),
    () => ({ image_url: { url: PIXEL } }),
    () => ({ type: "telepathy", text: text() }),
    () => ({ type: "text", text: text(), file: { file_id: "file-1" } }),
    () => ({ type: "refusal", refusal: text() }),
    () => ({ type: "thinking", thinking: [{ type: "text", text: text() }] }),
  ])();
}

function anthropicPart(scene: Scene): unknown {
  const { random, mood } = scene;
  const text = () => textIn(mood, random.integer(1, 400), random);
  const image = { type: "image", source: sourceOf(imageUrl(scene)) };
  if (scene.personality.sees !== undefined && random.chance(0.5)) return image;
  const mark = random.chance(0.4) ? { cache_control: cacheMark(random) } : {};
  return random.pick<() => unknown>([
    () => ({ type: "text", text: text(), ...mark }),
    () => image,
    () => ({ ...image, ...mark }),
    () => ({ type: "document", source: { type: "text", media_type: "text/plain", data: text() }, ...mark }),
    () => ({ type: "document", source: { type: "content", content: text() } }),
    () => ({
      type: "document",
      source: { type: "content", content: [{ type: "text", text: text() }, image] },
      ...mark,
    }),
    () => ({ type: "document", source: { type: "content", content: [{ type: "text", text: text(), ...mark }] } }),
    () => ({ type: "document", source: { type: "base64", media_type: "application/pdf", data: "JVBERi0=" } }),
    () => ({ type: "document", source: { type: "url", url: "https://papers.example/a.pdf" } }),
    () => ({ type: "document", source: { type: "file", file_id: "file_1" } }),
    () => ({
      type: "search_result",
      source: "https://a.example",
      title: text(),
      content: [{ type: "text", text: text() }],
    }),
    () => ({ type: "tool_result", tool_use_id: "t1", content: [{ type: "text", text: text(), ...mark }, image] }),
    () => ({ type: "tool_result", tool_use_id: "t1", content: text(), ...mark }),
    () => ({ type: "thinking", thinking: text(), signature: "c2ln" }),
    () => ({ type: "redacted_thinking", data: text() }),
    () => ({ type: "container_upload", file_id: "file_1" }),
    () => ({ text: text() }),
  ])();
}

function cacheMark(random: Random): unknown {
  return random.pick<unknown>([
    { type: "ephemeral" },
    { type: "ephemeral", ttl: "5m" },
    { type: "ephemeral", ttl: "1h" },
    { type: "ephemeral", TTL: "1h" },
    { ttl: "1h" },
  ]);
}

function toolMembers({ random, mood }: Scene, family: Family): Member[] {
  const parameters = { type: "object", properties: { q: { type: "string", description: textIn(mood, 60, random) } } };
  const bare = { name: "look", description: textIn(mood, random.integer(5, 300), random) };
  const tool = {
    chat: { type: "function", function: { ...bare, parameters } },
    responses: { type: "function", ...bare, parameters },
    messages: {
      ...bare,
      input_schema: parameters,
      ...(random.chance(0.2) ? { cache_control: cacheMark(random) } : {}),
    },
    completions: null,
    embeddings: null,
  }[family];
  if (tool === null) return [];
  const hosted = { type: random.pick(["web_search", "web_search_20250305", "code_interpreter", "mcp", "file_search"]) };
  const tools: unknown[] = random.chance(0.06) ? [tool, hosted] : [tool];
  return [memberOf("tools", tools)];
}

function HARMLESS(random: Random): readonly Member[][] {
  return [
    [memberOf("temperature", random.fraction())],
    [memberOf("top_p", 0.9), memberOf("seed", random.integer(0, 99))],
    [memberOf("stop", ["END"])],
    [memberOf("user", "u1"), memberOf("metadata", { job: "a" })],
    [memberOf("response_format", { type: "json_object" })],
    [memberOf("presence_penalty", 0.1), memberOf("top_k", 4)],
  ];
}

function capValue(random: Random, oddShare: number): Tree {
  if (!random.chance(oddShare)) return treeOf(random.chance(0.7) ? random.integer(1, 300) : random.integer(300, 3_000));
  return raw(
    random.pick([
      ...["0", "-1", "1", "1.5", '"100"', "1e2", "1E9", "1e400", "99999999999999999999", "null", "[]", "{}", "true"],
      ...["2147483648", "4096", "100000", "0.5", "-0", '"1"', "9007199254740993"],
    ]),
  );
}

/** Parameters that some provider bills beyond the tokens of the call. */
const BILLABLE: readonly (readonly [string, unknown])[] = [
  ["enable_search", true],
  ["enable_thinking", true],
  ["thinking_budget", 50_000],
  ["search_parameters", { mode: "on" }],
  ["web_search_options", {}],
  ["plugins", [{ id: "web" }]],
  ["data_sources", [{ type: "azure_search" }]],
  ["previous_response_id", "resp_1"],
  ["chat_template", "{{ messages * 100 }}"],
  ["prediction", { type: "content", content: "word ".repeat(400) }],
  ["use_beam_search", true],
  ["num_beams", 8],
  ["best_of", 9],
  ["n", 7],
  ["repeat_prompt", 500],
  ["extra_body", { n: 20, enable_search: true, max_tokens: 7_000 }],
  ["x_drafts", 20],
  ["x_ensemble", true],
  ["mm_processor_kwargs", { max_pixels: 1e9 }],
  ["service_tier", "priority"],
  ["speed", "fast"],
  ["inference_geo", "us"],
  ["models", ["m-large"]],
  ["documents", [{ text: "paper ".repeat(300) }]],
  ["chat_template_kwargs", { documents: "surface ".repeat(300) }],
];
const SECOND_CAPS = [
  "max_tokens",
  "max_completion_tokens",
  "max_output_tokens",
  "n_predict",
  "max_new_tokens",
  "num_predict",
];

/** Bends the body, mostly once: a bent body that is refused tests nothing behind the refusal. */
function bend(scene: Scene, body: ObjectTree, family: Family): void {
  const { random } = scene;
  if (!random.chance(scene.malice)) return;
  for (let times = random.chance(0.8) ? 1 : random.integer(2, 4); times > 0; times -= 1)
    random.pick(BENDS)(scene, body, family);
}

type Bend = (scene: Scene, body: ObjectTree, family: Family) => void;

const BENDS: readonly Bend[] = [
  // A second spelling of the cap, small where the first is large or the other way round.
  ({ random }, body) =>
    insert(random, body, { key: JSON.stringify(random.pick(SECOND_CAPS)), value: capValue(random, 0.3) }),
  ({ random }, body, family) => {
    const cap = find(body, CAPS[family]);
    if (cap !== undefined) cap.key = JSON.stringify(random.pick(SECOND_CAPS));
  },
  ({ random }, body, family) => {
    const cap = find(body, CAPS[family]);
    if (cap !== undefined) cap.value = capValue(random, 1);
  },
  ({ random }, body) => insert(random, body, billable(random)),
  ({ random }, body) => insert(random, body, billable(random)),
  foldName,
  foldName,
  foldName,
  doubleName,
  escapeName,
  ({ random }, body, family) => {
    if (family === "messages") random.pick(objectsIn(body)).members.push(memberOf("cache_control", cacheMark(random)));
    else insert(random, body, memberOf("service_tier", random.pick(["flex", "priority", "auto", "scale", "Priority"])));
  },
  ({ random }, body) => {
    const options = random.pick<unknown>([{ include_usage: false }, { Include_Usage: false }, {}, null, [], "no"]);
    insert(random, body, memberOf("stream", true));
    insert(random, body, memberOf("stream_options", options));
  },
  ({ random }, body) =>
    insert(random, body, memberOf(random.pick(["Stream", "stream"]), random.pick(["true", 1, true]))),
  ({ random, mood }, body) =>
    insert(
      random,
      body,
      memberOf(
        random.pick(["prompt", "input", "system", "instructions", "messages", "suffix"]),
        textIn(mood, 800, random),
      ),
    ),
];

function billable(random: Random): Member {
  const [name, value] = random.pick(BILLABLE);
  return memberOf(name, name === "n" || name === "best_of" ? random.pick([2, 3, 9, 50, "9", 1e3, 0, 2.5]) : value);
}

function insert(random: Random, body: ObjectTree, member: Member): void {
  body.members.splice(random.integer(0, body.members.length), 0, member);
}

/** Writes a name of any level in another case; beside the plain one, with another value, or instead of it. */
function foldName({ random, run }: Scene, body: ObjectTree): void {
  const [object, member] = anyMember(random, body);
  const key = JSON.stringify(otherCase(nameOf(member), random));
  if (random.chance(0.4)) member.key = key;
  else insert(random, object, { key, value: otherValue(run, nameOf(member), member.value, random) });
}

function doubleName({ random, run }: Scene, body: ObjectTree): void {
  const [object, member] = anyMember(random, body);
  insert(random, object, { key: member.key, value: otherValue(run, nameOf(member), member.value, random) });
}

function escapeName({ random, run }: Scene, body: ObjectTree): void {
  const [object, member] = anyMember(random, body);
  const name = nameOf(member);
  const at = random.integer(0, Math.max(0, name.length - 1));
  const code = (name.codePointAt(at) ?? 0x5f).toString(16).padStart(4, "0");
  const key = `${JSON.stringify(name.slice(0, at)).slice(0, -1)}\\u${code}${JSON.stringify(name.slice(at + 1)).slice(1)}`;
  if (random.chance(0.5)) member.key = key;
  else insert(random, object, { key, value: otherValue(run, name, member.value, random) });
}

function anyMember(random: Random, body: ObjectTree): [ObjectTree, Member] {
  const objects = objectsIn(body).filter(({ members }) => members.length > 0);
  // The top level matters most.
  const object = random.chance(0.5) ? body : random.pick(objects);
  return [object, random.pick(object.members)];
}

function otherCase(name: string, random: Random): string {
  const spellings = [
    name.toUpperCase(),
    name.slice(0, 1).toUpperCase() + name.slice(1),
    name.replaceAll("s", "\u017f"),
    name.replaceAll("k", "\u212a"),
    name.replace(/_(.)/g, (_, letter: string) => `_${letter.toUpperCase()}`),
  ].filter((spelling) => spelling !== name);
  return spellings.length === 0 ? name : random.pick(spellings);
}

function otherValue(run: number, name: string, value: Tree, random: Random): Tree {
  // It may replace the text that contained the marker.
  const long = `${markerOf(run, 0)} ${"9".repeat(3_000)}`;
  if (/max_|n_predict|^n$/.test(name)) return treeOf(random.pick([1, 16, 5_000, 8_000]));
  if (name === "model") return treeOf("m-large");
  if (name === "content" || name === "text" || name === "prompt" || name === "input") return treeOf(long);
  if (name === "messages") return treeOf([{ role: "user", content: long }]);
  if (name === "ttl") return treeOf("1h");
  return random.chance(0.5) ? value : treeOf(random.pick<unknown>([null, 9, "other", true, []]));
}

/** A request in the gateway's own form, or in a dialect. */
function nativeRequest(scene: Scene, way: Exclude<Way, "v1">): Omit<HostileRequest, "leavesAfterMs"> {
  const { random } = scene;
  const isOne = way === "query" || way === "dialect";
  const calls = isOne ? 1 : random.integer(1, ITEMS_MAX);
  const body = objectOf({ model: modelOf(scene), ...settingsOf(scene) });
  if (isOne) body.members.push(...callMembers(scene));
  else if (way === "items") {
    const items = Array.from({ length: calls }, (): Tree => {
      const own = random.chance(0.3) ? objectOf(settingsOf(scene)).members : [];
      return { kind: "object", members: [...callMembers(scene), ...own] };
    });
    body.members.push({ key: '"items"', value: { kind: "array", items } });
  } else
    body.members.push(
      memberOf(
        "prompts",
        Array.from({ length: calls }, () => promptOf(scene)),
      ),
    );
  bendNative(scene, body);
  return { path: pathOf(scene, way), text: write(body), tree: body, calls };
}

function pathOf({ random }: Scene, way: Exclude<Way, "v1">): string {
  if (way === "query") return "/query";
  if (way === "dialect") return random.pick(["/llm_query", "/rlm_query"]);
  if (way === "dialect-batch") return random.pick(["/llm_query_batch", "/llm_query_batched", "/rlm_query_batched"]);
  return "/batch";
}

function promptOf({ run, next, mood, random }: Scene): string {
  return `${markerOf(run, next())} ${textIn(mood, size(random), random)}`;
}

function callMembers(scene: Scene): Member[] {
  const text = promptOf(scene);
  if (scene.random.chance(0.65)) return [memberOf("prompt", text)];
  return [
    memberOf("messages", conversation(scene, text, scene.personality.kind === "anthropic" ? "messages" : "chat")),
  ];
}

function settingsOf(scene: Scene): Record<string, unknown> {
  const { random, mood } = scene;
  return {
    ...(random.chance(0.6) ? { max_tokens: random.integer(1, random.chance(0.8) ? 300 : 3_000) } : {}),
    ...(random.chance(0.2) ? { system: textIn(mood, size(random), random) } : {}),
    ...(random.chance(0.1) ? { temperature: 0.5 } : {}),
    ...(random.chance(0.03) ? { timeout_ms: random.integer(1, 40) } : {}),
    ...(random.chance(0.35) ? { params: paramsOf(scene) } : {}),
  };
}

function paramsOf(scene: Scene): Record<string, unknown> {
  const { random } = scene;
  const family = scene.personality.kind === "anthropic" ? "messages" : "chat";
  const params: Record<string, unknown> = { top_p: 0.9 };
  const set = ({ key, value }: Member) => (params[String(JSON.parse(key))] = JSON.parse(write(value)));
  if (random.chance(0.3)) toolMembers(scene, family).forEach(set);
  if (!random.chance(scene.malice)) return params;
  const [name, value] = random.chance(0.5)
    ? random.pick(BILLABLE)
    : [otherCase(random.pick([...SECOND_CAPS, "messages", "model", "stream", "n"]), random), 6_000];
  return { ...params, [name]: value };
}

/** Doubled and folded names of the gateway's own fields. */
function bendNative(scene: Scene, body: ObjectTree): void {
  if (!scene.random.chance(scene.malice / 4)) return;
  scene.random.pick([foldName, doubleName, escapeName])(scene, body);
}
