/** A server that speaks the wires of all personalities, each below its own first folder, and keeps a bill for each. */
import { createVerify, generateKeyPairSync } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { z } from "zod";
import { PERSONALITIES, type Failing, type Personality } from "./personalities.ts";
import { isSigned } from "./signature.ts";

export const AWS_KEY = {
  id: "AKIAEXAMPLE0123",
  secret: "wJalrXUtnFEMI/K7MDENG+bPxRfi",
  region: "us-east-1",
  service: "bedrock",
};
export const RIGHT_KEY = "right-key-0123456789abcdef";
/** USD per million tokens. */
export const PRICE = { input: 1, output: 4 };
/** Tokens of each prompt beside its words, and the longest prompt. */
const TEMPLATE = 7;
const CONTEXT = 128;

const PAIRS = {
  right: generateKeyPairSync("rsa", { modulusLength: 2048 }),
  wrong: generateKeyPairSync("rsa", { modulusLength: 2048 }),
};

export type Seen = { path: string; body: Record<string, unknown> };
export type Book = { nanoUsd: number; seen: Seen[]; faults: string[]; tokens: number };

const message = z.looseObject({ role: z.string(), content: z.unknown() });
const request = z.looseObject({
  model: z.string(),
  messages: z.array(message),
  stream: z.boolean().optional(),
  stream_options: z.looseObject({ include_usage: z.boolean().optional() }).optional(),
  max_tokens: z.int().optional(),
  max_completion_tokens: z.int().optional(),
  tools: z.array(z.unknown()).optional(),
});
type Chat = z.infer<typeof request>;

const wordsOf = (text: string): string[] => text.split(/\s+/).filter((word) => word !== "");
const textOf = (content: unknown): string => (typeof content === "string" ? content : JSON.stringify(content));

/** What the model says: the last message's words, from the last to the first, up to the cap. */
function answerOf(chat: Chat, cap: number | null) {
  const said = wordsOf(textOf(chat.messages.at(-1)?.content)).toReversed();
  const words = cap === null ? said : said.slice(0, cap);
  const prompt = chat.messages.reduce((sum, { content }) => sum + wordsOf(textOf(content)).length, TEMPLATE);
  return { text: words.join(" "), isCut: words.length < said.length, prompt, completion: words.length };
}
type Answer = ReturnType<typeof answerOf>;

export class ProviderServer {
  readonly books = new Map<string, Book>();
  readonly #limitedOnce = new Set<string>();
  #origin = "";

  bookOf(title: string): Book {
    const book = this.books.get(title) ?? { nanoUsd: 0, seen: [], faults: [], tokens: 0 };
    this.books.set(title, book);
    return book;
  }

  /** The address that stands for a provider's host. */
  hostOf(title: string): string {
    return `${this.#origin}/${slugOf(title)}`;
  }

  /** The JSON of a service account whose tokens this server gives; `wrong` has another private key. */
  serviceAccount(whose: keyof typeof PAIRS): string {
    const privateKey = PAIRS[whose].privateKey.export({ type: "pkcs8", format: "pem" });
    const names = { type: "service_account", client_email: "run@project.example", private_key_id: "key-1" };
    return JSON.stringify({ ...names, private_key: privateKey, token_uri: `${this.#origin}/token` });
  }

  async start(): Promise<() => Promise<void>> {
    const server = createServer(
      (req, res) => void this.#answer(req, res).catch((error: unknown) => res.writeHead(418).end(String(error))),
    );
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("the server has no TCP address");
    this.#origin = `http://127.0.0.1:${address.port}`;
    return async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    };
  }

  async #answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of req) chunks.push(Buffer.from(chunk));
    const body = Buffer.concat(chunks);
    const { url = "" } = req;
    if (url === "/token") return this.#giveToken(body, res);
    const slug = url.split("/")[1] ?? "";
    const personality = PERSONALITIES.find(({ title }) => slugOf(title) === slug);
    if (personality === undefined) return void res.writeHead(404).end("no such provider");
    const book = this.bookOf(personality.title);
    const chat = request.parse(JSON.parse(body.toString("utf8")));
    const path = url.slice(slug.length + 1);
    book.seen.push({ path, body: chat });
    if (!this.#hasKey(personality, req, { path: url, body })) return fail(res, personality.wrongKey);
    const wanted = personality.path.replace("MODEL", encodeURIComponent(chat.model));
    if (path !== wanted) book.faults.push(`${path} instead of ${wanted}`);
    for (const [name, value] of Object.entries(personality.demands ?? {})) {
      if (req.headers[name] !== value) book.faults.push(`${name}: ${String(req.headers[name])}`);
    }
    this.#serve(personality, chat, res, book);
  }

  #serve(personality: Personality, chat: Chat, res: ServerResponse, book: Book): void {
    const other = personality.cap === "max_tokens" ? "max_completion_tokens" : "max_tokens";
    if (chat[other] !== undefined) book.faults.push(`a cap in ${other}`);
    const answer = answerOf(chat, chat[personality.cap] ?? null);
    const last = textOf(chat.messages.at(-1)?.content);
    if (last.startsWith("busy") && !this.#limitedOnce.has(personality.title)) {
      this.#limitedOnce.add(personality.title);
      return fail(res, personality.limited);
    }
    if (answer.prompt > CONTEXT && personality.tooLong !== null) return fail(res, personality.tooLong);
    const list = answer.prompt * PRICE.input * 1_000 + answer.completion * PRICE.output * 1_000;
    const cost = personality.namesCost === true ? Math.floor(list * 0.9) : list;
    book.nanoUsd += cost;
    const write = personality.protocol === "openai" ? writeChat : writeMessage;
    write(res, { personality, chat, answer, costUsd: cost / 1e9 });
  }

  #hasKey({ key }: Personality, req: IncomingMessage, sent: { path: string; body: Buffer }): boolean {
    if (key === null) return true;
    if (key === "aws") return isSigned({ method: req.method ?? "", headers: req.headers, ...sent }, AWS_KEY);
    if (key === "google") return /^Bearer ya29\.token-\d+$/.test(req.headers.authorization ?? "");
    return req.headers[key.header] === `${key.scheme} ${RIGHT_KEY}`.trim();
  }

  /** Google's token endpoint: a JWT whose signature, audience and times are checked gets a token. */
  #giveToken(body: Buffer, res: ServerResponse): void {
    const book = this.bookOf("Vertex AI");
    const form = new URLSearchParams(body.toString("utf8"));
    const [head = "", claims = "", signature = ""] = (form.get("assertion") ?? "").split(".");
    const verify = createVerify("RSA-SHA256").update(`${head}.${claims}`);
    const isRight = verify.verify(PAIRS.right.publicKey, Buffer.from(signature, "base64url"));
    const said = z
      .object({ iss: z.string(), aud: z.string(), scope: z.string(), iat: z.int(), exp: z.int() })
      .parse(JSON.parse(Buffer.from(claims, "base64url").toString()));
    const isFresh = said.exp - said.iat <= 3_600 && Math.abs(said.iat - Date.now() / 1_000) < 300;
    if (
      form.get("grant_type") !== "urn:ietf:params:oauth:grant-type:jwt-bearer" ||
      said.aud !== `${this.#origin}/token` ||
      !isFresh
    ) {
      book.faults.push("the assertion is not as documented");
    }
    if (!isRight) return fail(res, PERSONALITIES.find(({ key }) => key === "google")?.wrongKey ?? null);
    book.tokens += 1;
    json(res, 200, { access_token: `ya29.token-${book.tokens}`, expires_in: 3_599, token_type: "Bearer" });
  }
}

export function slugOf(title: string): string {
  return title.toLowerCase().replace(/[^a-z0-9]+/g, "-");
}

type Written = { personality: Personality; chat: Chat; answer: Answer; costUsd: number };

function writeChat(res: ServerResponse, { personality, chat, answer, costUsd }: Written): void {
  const { text, isCut, prompt, completion } = answer;
  const cost = personality.namesCost === true ? { cost: costUsd } : {};
  const usage = {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    ...personality.usage,
    ...cost,
  };
  const base = { id: "chatcmpl-1", created: 1_795_000_000, model: chat.model };
  const call = {
    id: "call_1",
    type: "function",
    function: { name: "look_up", arguments: JSON.stringify({ words: text }) },
  };
  const isTool = chat.tools !== undefined;
  const finish = isTool ? "tool_calls" : isCut ? "length" : "stop";
  if (chat.stream !== true) {
    const said = { role: "assistant", content: isTool ? null : text, ...(isTool ? { tool_calls: [call] } : {}) };
    return json(res, 200, {
      ...base,
      object: "chat.completion",
      choices: [{ index: 0, message: said, finish_reason: finish }],
      usage,
    });
  }
  res.writeHead(200, { "content-type": "text/event-stream" });
  const event = (fields: object): void =>
    void res.write(`data: ${JSON.stringify({ ...base, object: "chat.completion.chunk", ...fields })}\n\n`);
  for (const word of text.split(/(?<= )/))
    event({ choices: [{ index: 0, delta: { content: word }, finish_reason: null }] });
  event({ choices: [{ index: 0, delta: {}, finish_reason: finish }] });
  if (chat.stream_options?.include_usage === true) event({ choices: [], usage });
  res.end("data: [DONE]\n\n");
}

function writeMessage(res: ServerResponse, { chat, answer }: Written): void {
  const { text, isCut, prompt, completion } = answer;
  const isTool = chat.tools !== undefined;
  const content = isTool
    ? [{ type: "tool_use", id: "toolu_1", name: "look_up", input: { words: text } }]
    : [{ type: "text", text }];
  const reason = isTool ? "tool_use" : isCut ? "max_tokens" : "end_turn";
  const base = { id: "msg_1", type: "message", role: "assistant", model: chat.model };
  if (chat.stream !== true) {
    const usage = { input_tokens: prompt, output_tokens: completion };
    return json(res, 200, { ...base, content, stop_reason: reason, stop_sequence: null, usage });
  }
  res.writeHead(200, { "content-type": "text/event-stream" });
  const event = (type: string, fields: object): void =>
    void res.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`);
  event("message_start", {
    message: { ...base, content: [], stop_reason: null, usage: { input_tokens: prompt, output_tokens: 1 } },
  });
  event("content_block_start", { index: 0, content_block: { type: "text", text: "" } });
  event("content_block_delta", { index: 0, delta: { type: "text_delta", text } });
  event("content_block_stop", { index: 0 });
  event("message_delta", { delta: { stop_reason: reason, stop_sequence: null }, usage: { output_tokens: completion } });
  event("message_stop", {});
  res.end();
}

function json(res: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
  res.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
}

function fail(res: ServerResponse, failing: Failing | null): void {
  if (failing === null) return json(res, 418, "this provider does not fail so");
  json(res, failing.status, failing.body, failing.headers);
}
