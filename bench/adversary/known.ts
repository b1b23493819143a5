/** Holes that gateways are known to have, each as the one request that shows it: a judge that misses them is broken. */
import type { HostileRequest } from "./grammar.ts";
import { memberOf, objectOf, raw, write, type ObjectTree, type Tree } from "./json-text.ts";
import { markerOf } from "./mock.ts";
import { PERSONALITIES } from "./personalities.ts";
import { RUN_NUMBERS, type StormPlan } from "./storm.ts";

type Known = {
  name: string;
  personality: string;
  path: string;
  /** `ask` is the text of the prompt, which holds the marker; further markers are for further calls. */
  body: (ask: string) => ObjectTree;
  usd: number;
  /** Times that it is sent, one after the other. */
  times?: number;
  calls?: number;
};

const CHAT = "/v1/chat/completions";
const user = (content: unknown): unknown[] => [{ role: "user", content }];
const chat = (ask: string, fields: Record<string, unknown>): ObjectTree =>
  objectOf({ model: "", messages: user(ask), ...fields });

/** A member whose name no object literal could hold twice, or whose value no number spells. */
const and = (tree: ObjectTree, key: string, value: Tree | number): ObjectTree => ({
  kind: "object",
  members: [...tree.members, typeof value === "number" ? memberOf(key, value) : { key: JSON.stringify(key), value }],
});

const claude = (ask: string, fields: Record<string, unknown>): ObjectTree =>
  objectOf({ model: "", max_tokens: 20, messages: user(ask), ...fields });
const HOUR = { cache_control: { type: "ephemeral", ttl: "1h" } };
const LONG = "9".repeat(6_000);

const CASES: readonly Known[] = [
  {
    ...{ name: "a cap in the spelling that the upstream overlooks", personality: "deepseek", path: CHAT, usd: 0.001 },
    body: (ask) => chat(ask, { max_completion_tokens: 1 }),
  },
  {
    ...{
      name: "a small and a large cap, of which it takes the large one",
      personality: "reads-both",
      path: CHAT,
      usd: 0.002,
    },
    body: (ask) => chat(ask, { max_tokens: 1, max_completion_tokens: 8_000 }),
  },
  {
    ...{ name: "a cap in capitals behind the plain one", personality: "folds", path: CHAT, usd: 0.002 },
    body: (ask) => and(chat(ask, { max_tokens: 1 }), "MAX_TOKENS", 8_000),
  },
  {
    ...{ name: "a cap with a long s", personality: "folds", path: CHAT, usd: 0.002 },
    body: (ask) => and(chat(ask, { max_tokens: 1 }), "max_token\u017f", 8_000),
  },
  {
    ...{ name: "messages in capitals", personality: "folds", path: CHAT, usd: 0.004 },
    body: (ask) => and(chat(ask, { max_tokens: 1 }), "Messages", objectList(LONG)),
  },
  {
    ...{ name: "content in capitals", personality: "claude-folds", path: "/v1/messages", usd: 0.004 },
    body: (ask) => claude(ask, { messages: [{ role: "user", content: ask, Content: LONG }] }),
  },
  {
    ...{ name: "a cap twice", personality: "plain", path: CHAT, usd: 0.002 },
    body: (ask) => and(chat(ask, { max_tokens: 1 }), "max_tokens", 8_000),
  },
  {
    ...{ name: "a cap that is text", personality: "plain", path: CHAT, usd: 0.002 },
    body: (ask) => and(chat(ask, {}), "max_tokens", raw('"1"')),
  },
  {
    ...{ name: "a cap of nought", personality: "plain", path: CHAT, usd: 0.002 },
    body: (ask) => chat(ask, { max_tokens: 0 }),
  },
  {
    ...{
      name: "short prompts under a hidden template",
      personality: "tools-350",
      path: "/query",
      usd: 0.004,
      times: 30,
    },
    body: (prompt) => objectOf({ model: "", prompt, max_tokens: 5 }),
  },
  {
    ...{
      name: "short prompts under one of 600 tokens",
      personality: "hidden-600",
      path: "/query",
      usd: 0.01,
      times: 20,
    },
    body: (prompt) => objectOf({ model: "", prompt, max_tokens: 5 }),
  },
  {
    ...{ name: "calls that a proxy gives up on", personality: "proxied", path: "/query", usd: 0.02, times: 15 },
    body: (prompt) => objectOf({ model: "", prompt, max_tokens: 300 }),
  },
  {
    ...{ name: "answers that a filter stops", personality: "azure", path: CHAT, usd: 0.02, times: 15 },
    body: (ask) => chat(`${ask} ${LONG.slice(0, 800)}`, { max_tokens: 50 }),
  },
  {
    ...{ name: "a template for the prompt in a batch's params", personality: "extras", path: "/batch", usd: 0.005 },
    body: (ask) => objectOf({ model: "", prompts: [ask], max_tokens: 5, params: { chat_template: "{{ x * 100 }}" } }),
  },
  {
    ...{ name: "a search in an item's params", personality: "extras", path: "/batch", usd: 0.002 },
    body: (prompt) =>
      objectOf({ model: "", items: [{ prompt, max_tokens: 5, params: { enable_search: true } }], temperature: 0 }),
  },
  {
    ...{
      name: "an unknown parameter, in a query's params",
      personality: "extras",
      path: "/query",
      usd: 0.002,
    },
    body: (prompt) => objectOf({ model: "", prompt, max_tokens: 40, params: { x_drafts: 50 } }),
  },
  {
    ...{ name: "fields inside extra_body", personality: "extras", path: CHAT, usd: 0.002 },
    body: (ask) => chat(ask, { max_tokens: 5, extra_body: { max_tokens: 8_000, n: 9 } }),
  },
  {
    ...{ name: "thinking that no cap bounds", personality: "extras", path: CHAT, usd: 0.002 },
    body: (ask) => chat(ask, { max_tokens: 5, enable_thinking: true }),
  },
  {
    ...{ name: "a dearer tier", personality: "tiers", path: CHAT, usd: 0.00025 },
    body: (ask) => chat(ask, { max_tokens: 20, service_tier: "priority" }),
  },
  {
    ...{
      name: "a cache write of an hour in a document's content",
      personality: "claude",
      path: "/v1/messages",
      usd: 0.5,
    },
    body: (ask) => {
      const content = [{ type: "text", text: LONG, ...HOUR }];
      return claude(ask, {
        messages: user([
          { type: "text", text: ask },
          { type: "document", source: { type: "content", content } },
        ]),
      });
    },
  },
  {
    ...{ name: "a cache write of an hour on a tool", personality: "claude-tools", path: "/v1/messages", usd: 0.5 },
    body: (ask) =>
      claude(ask, { tools: [{ name: "t", description: LONG, input_schema: { type: "object" }, ...HOUR }] }),
  },
  {
    ...{ name: "a film, which is no picture", personality: "plain", path: CHAT, usd: 0.008 },
    body: (ask) =>
      chat(ask, {
        max_tokens: 5,
        messages: user([
          { type: "text", text: ask },
          { type: "video_url", video_url: { url: "https://films.example/a.mp4" } },
        ]),
      }),
  },
  {
    ...{ name: "a picture in a part that calls itself text", personality: "plain", path: CHAT, usd: 0.0018 },
    body: (ask) =>
      chat(ask, {
        max_tokens: 5,
        messages: user([{ type: "text", text: ask, image_url: { url: "https://a.example/b" } }]),
      }),
  },
  {
    ...{ name: "an item's reference among messages", personality: "resolves", path: CHAT, usd: 0.005 },
    body: (ask) => chat(ask, { max_tokens: 5, messages: [...user(ask), { type: "item_reference", id: "msg_1" }] }),
  },
  {
    ...{
      name: "an item's reference among Anthropic's messages",
      personality: "claude-resolves",
      path: "/v1/messages",
      usd: 0.005,
    },
    body: (ask) => claude(ask, { messages: [...user(ask), { type: "item_reference", id: "msg_1" }] }),
  },
  {
    ...{ name: "reasoning of which only the id is sent", personality: "resolves", path: "/v1/responses", usd: 0.005 },
    body: (ask) =>
      objectOf({
        ...{ model: "", max_output_tokens: 5 },
        input: [{ type: "reasoning", id: "rs_1", summary: [], encrypted_content: "" }, ...user(ask)],
      }),
  },
  {
    ...{ name: "thoughts beyond the cap", personality: "claude-resolves", path: "/v1/messages", usd: 0.005 },
    body: (ask) => claude(ask, { thinking: { type: "enabled", budget_tokens: 9_000 } }),
  },
  {
    ...{ name: "many prompts, choices and candidates", personality: "plain", path: "/v1/completions", usd: 0.003 },
    body: (ask) => objectOf({ model: "", prompt: [ask, "b", "c", "d"], n: 3, best_of: 5, max_tokens: 50 }),
  },
];

function objectList(content: string): Tree {
  return { kind: "array", items: [objectOf({ role: "user", content })] };
}

/** Each known hole as a storm of its own, from run number `from`. */
export function knownPlans(seed: number, from: number): { name: string; plan: StormPlan; request: HostileRequest }[] {
  return CASES.map((known, at) => {
    const run = from + at;
    const personality = PERSONALITIES.find(({ name }) => name === known.personality);
    if (personality === undefined) throw new Error(`unknown personality: ${known.personality}`);
    const tree = known.body(`${markerOf(run * RUN_NUMBERS, 1)} good men`);
    const model = tree.members.find(({ key }) => key === '"model"');
    if (model !== undefined) model.value = raw(JSON.stringify(`${known.personality}/m`));
    const request = { path: known.path, text: write(tree), tree, calls: 1, leavesAfterMs: null };
    const plan: StormPlan = {
      ...{ run, seed, personality, limits: { usd: known.usd }, children: [], requests: known.times ?? 1, width: 1 },
      ...{ malice: 0, moodAt: () => "prose" as const },
    };
    return { name: known.name, plan, request };
  });
}
