/**
 * A gateway before providers that write messages with more than text, the ways on which it shows the message of one call, and what
 * `/v1` returns for the same call.
 */
import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import { z } from "zod";
import { startByteUpstream, type ByteUpstream } from "../support/byte-upstream.ts";
import { startGateway, type Gateway, type GatewayRequest } from "../support/gateway.ts";
import { SPEAKERS, wireOf, type Speaker } from "../support/speakers.ts";
import { endOf, openGroup } from "./following.ts";
import { answerOf, PROVIDER_KEY, type Answer, type RunAccess } from "./world.ts";

export type SpeakingWorld = {
  upstream: ByteUpstream;
  /** The gateway that runs now. */
  gateway: () => Gateway;
  openRun: (body?: object) => Promise<RunAccess>;
  /** SIGKILL, and a start on the same disk. */
  restart: () => Promise<void>;
  stop: () => Promise<void>;
};

const PRICES = { "*": { input: 1, output: 2 } };

const speakerOf = (path: string): Speaker | undefined => SPEAKERS.find(({ name }) => path.split("/")[1] === name);

/**
 * Starts the providers and the gateway. Each provider has upstreams by its name: `-json` and `-stream` read its answers in either form,
 * `-record` and `-play` are a cassette of the first, `-record-stream` and `-play-stream` of the second. `more`: upstreams beside these.
 */
export async function startSpeakers({
  dataDir,
  more = {},
  vars = {},
}: {
  dataDir?: string;
  more?: Record<string, unknown>;
  vars?: Record<string, unknown>;
} = {}): Promise<SpeakingWorld> {
  const upstream = await startByteUpstream();
  upstream.serve((call, reply) => {
    const speaker = speakerOf(call.path);
    if (speaker === undefined) return reply.whole("{}", { status: 404 });
    const { stream } = z.looseObject({ stream: z.boolean().optional() }).parse(JSON.parse(call.body.toString()));
    if (stream !== true) return reply.whole(speaker.body);
    return reply.whole(wireOf(speaker), { headers: { "content-type": "text/event-stream" } });
  });
  const UPSTREAMS = { sim: { kind: "simulated" }, ...upstreamsAt(upstream), ...more };
  const all = { ADMIN_KEY: randomUUID(), UPSTREAMS, PROVIDER_KEY, ...vars };
  const start = () => startGateway({ ...(dataDir !== undefined && { dataDir }), vars: all });
  let gateway = await start();
  return {
    upstream,
    gateway: () => gateway,
    openRun: async (body = {}) => {
      const { id, token } = await gateway.openRun({ budget: { usd: 100 }, ...body });
      return { id, token, send: async (path, request) => answerOf(await gateway.fetch(path, { token, ...request })) };
    },
    restart: async () => {
      await gateway.kill();
      gateway = await start();
    },
    stop: async () => {
      await gateway.stop();
      await upstream.stop();
    },
  };
}

function upstreamsAt({ origin }: ByteUpstream) {
  const at = ({ name, kind }: Speaker, aggregate: string) => ({
    kind,
    base_url: `${origin}/${name}${kind === "openai" ? "/v1" : ""}`,
    api_key: "secret:PROVIDER_KEY",
    prices: PRICES,
    aggregate,
    file_tokens_max: 1_000,
  });
  const taped = (speaker: Speaker, form: string, mode: string) => ({
    kind: "cassette",
    mode,
    tape: `${speaker.name}-${form}`,
    upstream: at(speaker, form),
  });
  return Object.fromEntries(
    SPEAKERS.flatMap((speaker) => [
      [`${speaker.name}-json`, at(speaker, "json")],
      [`${speaker.name}-stream`, at(speaker, "stream")],
      [`${speaker.name}-record`, taped(speaker, "json", "record")],
      [`${speaker.name}-play`, taped(speaker, "json", "replay")],
      [`${speaker.name}-record-stream`, taped(speaker, "stream", "record")],
      [`${speaker.name}-play-stream`, taped(speaker, "stream", "replay")],
    ]),
  );
}

/** Does the same for each provider, at once. */
export const forEachSpeaker = (check: (speaker: Speaker) => Promise<void>): Promise<unknown> =>
  Promise.all(SPEAKERS.map(check));

const message = z.looseObject({ role: z.literal("assistant") });
export type Message = z.infer<typeof message>;
/** Whatever has a message beside its text. */
export const withMessage = z.looseObject({ message });
/** A group, whose slots all have a message. */
export const groupWithMessages = z.looseObject({ items: z.array(withMessage) });
const settled = z.looseObject({ results: z.array(withMessage) });
const graph = z.looseObject({ tasks: z.object({ a: withMessage }) });
const each = z.looseObject({ tasks: z.looseObject({ b: z.looseObject({ messages: z.array(message).min(1) }) }) });
const page = z.looseObject({ data: z.array(withMessage) });

const linesOf = ({ text }: Answer): unknown[] =>
  text.split("\n").flatMap((line): unknown[] => (line === "" ? [] : [JSON.parse(line)]));
const eventsOf = ({ text }: Answer): unknown[] =>
  text.split("\n").flatMap((line): unknown[] => (line.startsWith("data: ") ? [JSON.parse(line.slice(6))] : []));

const NDJSON = { accept: "application/x-ndjson" };
const SSE = { accept: "text/event-stream" };

/** A batch of one call. */
export const batchOfOne = (run: RunAccess, model: string, more: object = {}, request: GatewayRequest = {}) =>
  run.send("/batch", { json: { prompts: ["hi"], model, ...more }, ...request });
const graphOfOne = (model: string) => ({ tasks: [{ id: "a", prompt: "hi", model }] });
const messagesOf = (slots: readonly { message: Message }[]): Message[] => slots.map(({ message: found }) => found);
const messageIn = (lines: readonly unknown[]): Message => {
  const found = lines.map((line) => withMessage.safeParse(line)).find(({ success }) => success);
  if (found?.data === undefined) throw new Error(JSON.stringify(lines));
  return found.data.message;
};

type Way = (run: RunAccess, model: string) => Promise<Message[]>;

/** The same request twice under one key: what it shows of both answers. */
const twice = async (run: RunAccess, path: string, json: Record<string, unknown>, model: string) => {
  const request = { json, headers: { "idempotency-key": `${path.slice(1)}-${model}` } };
  const first = await run.send(path, request);
  const again = await run.send(path, request);
  expect(again.headers.get("idempotent-replayed")).toBe("true");
  return [first.json, again.json];
};

/** Each way in, with what it shows of the message of one call. */
export const WAYS: Record<string, Way> = {
  "/query": async (run, model) => {
    const { json } = await run.send("/query", { json: { prompt: "hi", model } });
    return [withMessage.parse(json).message];
  },
  "/query with an Idempotency-Key, twice": async (run, model) =>
    messagesOf((await twice(run, "/query", { prompt: "hi", model }, model)).map((json) => withMessage.parse(json))),
  "/query of a cascade, whose last model it is": async (run, model) => {
    const models = ["sim/echo", model];
    const json = { prompt: "hi", models, escalate_on: { json: "$.sure < 1" } };
    return [withMessage.parse((await run.send("/query", { json })).json).message];
  },
  "/batch": async (run, model) => messagesOf(groupWithMessages.parse((await batchOfOne(run, model)).json).items),
  "/batch with an Idempotency-Key, twice": async (run, model) => {
    const both = await twice(run, "/batch", { prompts: ["hi"], model }, model);
    return both.flatMap((json) => messagesOf(groupWithMessages.parse(json).items));
  },
  "/batch, settled": async (run, model) =>
    messagesOf(settled.parse((await batchOfOne(run, model, { error_style: "settled" })).json).results),
  "/batch with equal calls": async (run, model) => {
    const { json } = await run.send("/batch", { json: { prompts: ["hi", "hi"], model, dedupe: true } });
    return messagesOf(groupWithMessages.parse(json).items);
  },
  "/batch with samples": async (run, model) => {
    const { json } = await batchOfOne(run, model, { samples: { min: 2, max: 3, agree: 0.5, by: "exact" } });
    return messagesOf(groupWithMessages.parse(json).items);
  },
  "/batch as lines": async (run, model) => [messageIn(linesOf(await batchOfOne(run, model, {}, { headers: NDJSON })))],
  "/batch as events": async (run, model) => [messageIn(eventsOf(await batchOfOne(run, model, {}, { headers: SSE })))],
  "/groups/:id, its results as a page, as lines and as events": async (run, model) => {
    const { at } = await openGroup(run, { prompts: ["hi"], model });
    const { items } = groupWithMessages.parse((await endOf(run, at)).json);
    const { data } = page.parse((await run.send(`${at}/results`)).json);
    const lines = linesOf(await run.send(`${at}/results`, { headers: NDJSON }));
    const events = eventsOf(await run.send(`${at}/results`, { headers: SSE }));
    return [...messagesOf([...items, ...data]), messageIn(lines), messageIn(events)];
  },
  "/groups/:id/retry, of the call that had completed": async (run, model) => {
    const items = [
      { prompt: "hi", model },
      { prompt: "hi", model: "sim/fail?status=400" },
    ];
    const { at } = await openGroup(run, { items });
    await endOf(run, at);
    const retried = await run.send(`${at}/retry`, { method: "POST" });
    return [z.looseObject({ items: z.tuple([withMessage]).rest(z.unknown()) }).parse(retried.json).items[0].message];
  },
  "/dag": async (run, model) => [
    graph.parse((await run.send("/dag", { json: graphOfOne(model) })).json).tasks.a.message,
  ],
  "/dag as lines": async (run, model) => [
    messageIn(linesOf(await run.send("/dag", { json: graphOfOne(model), headers: NDJSON }))),
  ],
  "/dag as events": async (run, model) => [
    messageIn(eventsOf(await run.send("/dag", { json: graphOfOne(model), headers: SSE }))),
  ],
  "/dag, each element of a list": async (run, model) => {
    const tasks = [
      { id: "a", prompt: '{"of":["one","two"]}', model: "sim/echo" },
      { id: "b", foreach: "{{a.output.json.of}}", prompt: "{{item}}", model },
    ];
    const { messages } = each.parse((await run.send("/dag", { json: { tasks } })).json).tasks.b;
    expect(messages).toHaveLength(2);
    return messages;
  },
  "/groups/:id of a graph, and its results": async (run, model) => {
    const opened = await run.send("/dag", { json: graphOfOne(model), headers: { prefer: "respond-async" } });
    const at = opened.headers.get("location") ?? "";
    const { message: found } = graph.parse((await endOf(run, at)).json).tasks.a;
    return [found, ...messagesOf(page.parse((await run.send(`${at}/results`)).json).data)];
  },
};

/** What `/v1` returns for the same call: the message, or, of Anthropic, the blocks of its content. */
export async function viaV1(run: RunAccess, { kind, name }: Speaker): Promise<unknown> {
  const json = { model: `${name}-json/m`, messages: [{ role: "user", content: "hi" }], max_tokens: 100 };
  const path = kind === "openai" ? "/v1/chat/completions" : "/v1/messages";
  const { json: body } = await run.send(path, { json });
  if (kind === "anthropic") return z.looseObject({ content: z.array(z.looseObject({})) }).parse(body).content;
  return z.looseObject({ choices: z.tuple([withMessage]) }).parse(body).choices[0].message;
}

/** That a message is what `/v1` returns, field by field. `form`: how its provider wrote it. */
export function expectSame({ kind }: Speaker, found: Message, expected: unknown, form: "json" | "stream"): void {
  if (kind === "anthropic") expect(blocksIn(found)).toEqual(expected);
  else if (form === "stream") expect(said(found)).toEqual(said(expected));
  else expect(found).toEqual(expected);
}

/** Without fields that say nothing, which streams leave out, and the positions of calls, which DeepSeek writes in either. */
function said(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(said);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([name, member]) => [name, said(member)] as const);
  return Object.fromEntries(entries.filter(([, member]) => member !== null && member !== "" && !isEmpty(member)));
}

const isEmpty = (value: unknown): boolean =>
  typeof value === "object" && value !== null && Object.keys(value).length === 0;

const block = z.looseObject({ type: z.string() });
const calls = z.array(
  z.object({ id: z.string(), function: z.object({ name: z.string(), arguments: z.string() }) }).loose(),
);

/** The blocks of an Anthropic message as they are in its chat form. */
function blocksIn(chat: Message): unknown {
  const { content, content_blocks: whole, thinking_blocks: thoughts, tool_calls: called } = chat;
  if (whole !== undefined) return whole;
  return [
    ...z.array(block).parse(thoughts ?? []),
    ...(content === null ? [] : [{ type: "text", text: content }]),
    ...calls.parse(called ?? []).map(({ id, function: { name, arguments: args } }): unknown => ({
      type: "tool_use",
      id,
      name,
      input: JSON.parse(args),
    })),
  ];
}
