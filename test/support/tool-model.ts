/**
 * A model that uses tools as models do: it decides by what it is sent. Asked for the lengths of words, it asks the tool `length` for those
 * that no result has told it so far, two at a time, and adds up what the results say; so its answer is right only if each of them
 * has reached it in its place. It speaks the protocol of the request's path.
 */
import { z } from "zod";
import type { ByteCall, ByteReply } from "./byte-upstream.ts";

/** What a request says, whatever its protocol. */
type Heard = {
  user: string;
  /** Calls of earlier turns, with the results that came for them. */
  calls: { name: string; word: string; result: string | null }[];
  tools: string[];
};

/** What it does next: text, or calls of tools with their arguments as text. */
export type Said = { text: string } | { calls: { name: string; arguments: string }[] };

const block = z.looseObject({
  type: z.string().optional(),
  id: z.string().optional(),
  name: z.string().optional(),
  input: z.unknown().optional(),
  text: z.string().optional(),
  tool_use_id: z.string().optional(),
  content: z.unknown().optional(),
});
const message = z.looseObject({
  role: z.string(),
  content: z.union([z.string(), z.null(), z.array(block)]).optional(),
  tool_call_id: z.string().optional(),
  tool_calls: z
    .array(z.looseObject({ id: z.string(), function: z.looseObject({ name: z.string(), arguments: z.string() }) }))
    .optional(),
});
const tool = z.looseObject({ name: z.string().optional(), function: z.looseObject({ name: z.string() }).optional() });
const request = z.looseObject({ messages: z.array(message), tools: z.array(tool).optional() });

/** The text of a content in either protocol. */
function textIn(content: unknown): string {
  if (typeof content === "string") return content;
  const parts = z.array(block).safeParse(content);
  return parts.success ? parts.data.map(({ text }) => text ?? "").join("") : "";
}

const wordIn = (input: unknown): string =>
  z
    .looseObject({ word: z.string().catch("") })
    .catch({ word: "" })
    .parse(input).word;

export function heard(body: string): Heard {
  const { messages, tools = [] } = request.parse(JSON.parse(body));
  const calls = new Map<string, Heard["calls"][number]>();
  let user = "";
  const answered = (id: string, result: string): void => {
    const call = calls.get(id);
    if (call === undefined) throw new Error(`a result for ${id}, which nobody has called`);
    call.result = result;
  };
  for (const { role, content, tool_calls: asked = [], tool_call_id: of } of messages) {
    const blocks = Array.isArray(content) ? content : [];
    for (const { id, function: called } of asked)
      calls.set(id, { name: called.name, word: wordIn(jsonOr(called.arguments)), result: null });
    for (const { type, id = "", name = "", input } of blocks)
      if (type === "tool_use") calls.set(id, { name, word: wordIn(input), result: null });
    for (const { type, tool_use_id: id = "", content: result } of blocks)
      if (type === "tool_result") answered(id, textIn(result));
    if (role === "tool") answered(of ?? "", textIn(content));
    if (role === "user" && textIn(content) !== "") user = textIn(content);
  }
  return { user, calls: [...calls.values()], tools: tools.map((each) => each.function?.name ?? each.name ?? "") };
}

/** What it does about a request. `How long are …?` needs the tool; anything else it knows. */
export function think({ user, calls, tools }: Heard): Said {
  const ask = (name: string, word: string) => ({ name, arguments: JSON.stringify({ word }) });
  if (user.startsWith("Ask for ever")) return { calls: [ask("length", `turn${calls.length}`)] };
  if (user.startsWith("Ask the client")) return { calls: [ask("length", "a"), ask("weather", "b")] };
  if (user.startsWith("Ask badly") && calls.length === 0)
    return {
      calls: [
        { name: "length", arguments: '{"word": 7}' },
        { name: "length", arguments: "no JSON" },
      ],
    };
  if (user.startsWith("Ask badly")) return { text: calls.map(({ result }) => result ?? "?").join(" | ") };
  const words = /^How long are (.+)\?/.exec(user)?.[1]?.split(", ");
  if (words === undefined) return { text: `I know: ${user}` };
  const open = words.filter((word) => !calls.some((call) => call.word === word && call.result !== null));
  if (open.length > 0 && tools.includes("length"))
    return { calls: open.slice(0, 2).map((word) => ask("length", word)) };
  const results = words.map((word) => calls.find((call) => call.word === word)?.result ?? "?");
  const sum = results.reduce((total, result) => total + Number(result), 0);
  if (user.endsWith("as JSON")) return { text: JSON.stringify({ letters: sum }) };
  return { text: Number.isNaN(sum) ? `I could not: ${results.join(" | ")}` : `${sum} letters` };
}

const tokensIn = (text: string): number => Math.ceil(text.length / 4);

/** What it bills for a request, at a USD per million tokens. */
export function costUsdOf(body: string): number {
  return (tokensIn(body) + tokensIn(JSON.stringify(think(heard(body))))) / 1e6;
}

/** Answers a request of either protocol, with what its tokens cost. */
export function answerAsModel(call: ByteCall, reply: ByteReply): void {
  const body = call.body.toString("utf8");
  const said = think(heard(body));
  const turn = body.split("call_").length;
  const [prompt, completion] = [tokensIn(body), tokensIn(JSON.stringify(said))];
  const isAnthropic = call.path.endsWith("/messages");
  const id = (at: number): string => `call_${turn}_${at}`;
  if (isAnthropic) {
    const content =
      "text" in said
        ? [{ type: "text", text: said.text }]
        : said.calls.map((each, at) => ({
            type: "tool_use",
            id: id(at),
            name: each.name,
            input: jsonOr(each.arguments),
          }));
    const usage = { input_tokens: prompt, output_tokens: completion };
    const stop = "text" in said ? "end_turn" : "tool_use";
    const whole = { id: "msg_1", type: "message", role: "assistant", model: "m", content, stop_reason: stop, usage };
    return reply.whole(JSON.stringify(whole), { headers: { "content-type": "application/json" } });
  }
  const calls =
    "text" in said
      ? {}
      : { tool_calls: said.calls.map((each, at) => ({ id: id(at), type: "function", function: each })) };
  const answer = { role: "assistant", content: "text" in said ? said.text : null, ...calls };
  const choices = [{ index: 0, message: answer, finish_reason: "text" in said ? "stop" : "tool_calls" }];
  const usage = { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
  reply.whole(JSON.stringify({ id: "c", object: "chat.completion", model: "m", choices, usage }), {
    headers: { "content-type": "application/json" },
  });
}

function jsonOr(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return { word: text };
  }
}
