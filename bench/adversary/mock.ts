/**
 * The upstream: every personality on one loopback port, each under its name. It keeps its own bill by the marker that the
 * grammar hides in each request, and bills what it generated whether or not the answer arrives.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { answerText, streamText, type Answered } from "./answers.ts";
import { billOf, type Bill, type Family } from "./bill.ts";
import { member, parseLenient, type Value } from "./lenient-json.ts";
import { PERSONALITIES, TIMEOUT_MS, type Ending, type Personality } from "./personalities.ts";
import { Random } from "./random.ts";

/** One request that reached the upstream. `billed` is null where nothing is billed. */
export type Entry = {
  run: number;
  request: number;
  personality: string;
  family: Family;
  ending: Ending | "invalid";
  body: string;
  billed: Bill | null;
};

/** What one run has been billed: nano-USD, tokens, and calls that were answered. */
export type Account = {
  nanoUsd: number;
  promptTokens: number;
  completionTokens: number;
  answered: number;
  entries: Entry[];
};

export type Mock = {
  origin: string;
  accountOf(run: number): Account;
  /** Bodies without a marker: if there are any, the harness is broken. */
  unmarked: string[];
  requests: number;
  stop(): Promise<void>;
};

const MARKER = /~r(\d+)\.(\d+)~/;
/** The text by which the mock knows whose request it bills. */
export const markerOf = (run: number, request: number): string => `~r${run}.${request}~`;

const FAMILIES: readonly (readonly [string, Family])[] = [
  ["/chat/completions", "chat"],
  ["/completions", "completions"],
  ["/responses", "responses"],
  ["/messages", "messages"],
  ["/embeddings", "embeddings"],
];

/** Statuses with which proxies give up on a call that goes on, and is billed. */
const GAVE_UP = [504, 520, 522, 523, 524, 408];
/** Statuses that bill nothing anywhere. */
const UNBILLED = [429, 500, 502, 503];
/** Longest of an ordinary answer and of a slow one, ms. */
const LATENCY_MS = 12;
const SLOW_MS = TIMEOUT_MS / 3;
const ENTRY_CHARS_MAX = 4_000;

export async function startMock(seed: number): Promise<Mock> {
  const accounts = new Map<number, Account>();
  const accountOf = (run: number): Account => {
    const known = accounts.get(run) ?? { nanoUsd: 0, promptTokens: 0, completionTokens: 0, answered: 0, entries: [] };
    accounts.set(run, known);
    return known;
  };
  const byName = new Map(PERSONALITIES.map((personality) => [personality.name, personality]));
  const mock: Omit<Mock, "origin" | "stop"> = { accountOf, unmarked: [], requests: 0 };
  const server = createServer((request, response) => {
    textOf(request)
      .then((text) => {
        mock.requests += 1;
        const [, name = ""] = (request.url ?? "").split("/");
        const personality = byName.get(name);
        const family = FAMILIES.find(([path]) => request.url?.split("?", 1)[0]?.endsWith(path))?.[1];
        if (personality === undefined || family === undefined) return void response.writeHead(404).end("{}");
        const marker = MARKER.exec(text);
        if (marker === null) mock.unmarked.push(shown(text));
        const [run, call] = [Number(marker?.[1] ?? -1), Number(marker?.[2] ?? -1)];
        return serve({
          personality,
          family,
          text,
          run,
          call,
          betas: String(request.headers["anthropic-beta"] ?? ""),
          random: new Random(seed, run, call, mock.requests),
        });
      })
      .catch(() => response.destroy());

    async function serve(call: Call): Promise<void> {
      const entry = enter(call);
      const account = accountOf(call.run);
      account.entries.push(entry);
      if (entry.billed !== null) {
        account.nanoUsd += entry.billed.nanoUsd;
        account.promptTokens += entry.billed.promptTokens;
        account.completionTokens += entry.billed.completionTokens;
      }
      if (!["hang", "reset"].includes(entry.ending)) account.answered += 1;
      await answer(response, call, entry);
    }
  });
  const origin = await listen(server);
  return Object.assign(mock, {
    origin,
    stop: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  });
}

type Call = {
  personality: Personality;
  family: Family;
  text: string;
  run: number;
  call: number;
  betas: string;
  random: Random;
};

function enter({ personality, family, text, run, call, betas, random }: Call): Entry {
  const entry = { run, request: call, personality: personality.name, family, body: text.slice(0, ENTRY_CHARS_MAX) };
  const body = readBody(text, personality);
  if (body === null) return { ...entry, ending: "invalid", billed: null };
  const ending = random.weighted(personality.endings);
  if (ending === "refuse") return { ...entry, ending, billed: null };
  const bill = billOf(personality, family, body, random, betas);
  // What a filter stops costs its prompt.
  if (ending === "content-filter") return { ...entry, ending, billed: promptOnly(bill) };
  return { ...entry, ending, billed: bill };
}

function readBody(text: string, personality: Personality): Value | null {
  try {
    const body = parseLenient(text);
    const refused = (personality.refusedCaps ?? []).some((name) => {
      const value = member(body, name, personality.keys);
      return value !== undefined && value.kind !== "null";
    });
    return body.kind !== "object" || refused ? null : body;
  } catch {
    return null;
  }
}

function promptOnly(bill: Bill): Bill {
  const completionShare = bill.promptTokens / (bill.promptTokens + 4 * bill.completionTokens);
  return { ...bill, completionTokens: 0, nanoUsd: Math.ceil(bill.nanoUsd * completionShare) };
}

async function answer(response: ServerResponse, call: Call, { ending, billed, body }: Entry): Promise<void> {
  const { personality, family, random } = call;
  await sleep(ending === "slow" ? SLOW_MS : LATENCY_MS * random.fraction());
  if (response.destroyed || ending === "hang") return;
  if (ending === "invalid") return fail(response, 400, "invalid_request_error", "Unsupported parameter or no JSON");
  if (ending === "refuse") return fail(response, random.pick(UNBILLED), "overloaded", "try later");
  if (ending === "content-filter") return fail(response, 400, "content_filter", "The response was filtered");
  if (ending === "violation") return fail(response, 403, "usage_guidelines", "Content violates usage guidelines");
  if (ending === "gave-up") return fail(response, random.pick(GAVE_UP), "timeout", "the proxy gave up");
  if (ending === "reset") return void response.socket?.resetAndDestroy();
  if (billed === null) throw new Error("an answer that bills nothing");
  const answered: Answered = {
    family,
    bill: billed,
    model: "m",
    cost: personality.namesCost === true ? billed.nanoUsd / 1e9 : null,
    hidesUsage: ending === "no-usage",
    echo: body.length,
  };
  if (billed.streams && family !== "embeddings") return stream(response, streamText(answered), ending);
  const text = answerText(answered);
  const headers = { "content-type": "application/json" };
  if (ending === "truncated" || ending === "cut-stream") {
    // A proxy that lost its upstream ends the body in the middle; some announce no length, so that it looks whole.
    response.writeHead(200, headers);
    const half = text.slice(0, Math.floor(text.length * random.fraction()));
    return void (random.chance(0.5) ? response.end(half) : response.write(half, () => response.destroy()));
  }
  response.writeHead(200, { ...headers, "content-length": Buffer.byteLength(text) });
  response.end(text);
}

function stream(response: ServerResponse, events: readonly string[], ending: Ending | "invalid"): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  const cut = ending === "truncated" || ending === "cut-stream";
  const sent = cut ? events.slice(0, Math.max(1, events.length - 2)) : events;
  if (!cut) return void response.end(sent.join(""));
  response.write(sent.join(""), () => (ending === "truncated" ? response.end() : response.destroy()));
}

function fail(response: ServerResponse, status: number, code: string, message: string): void {
  const text = JSON.stringify({ type: "error", error: { type: code, code, message, param: null } });
  response.writeHead(status, {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(text),
    "retry-after-ms": "5",
  });
  response.end(text);
}

const SHOWN_CHARS_MAX = 900;

/** A body for reports: long texts are shortened to what distinguishes them. */
export function shown(body: string): string {
  const short = body.replaceAll(
    /"((?:[^"\\]|\\.){60,}?)(?:"|$)/g,
    (_, text: string) => `"${text.slice(0, 40)}…${text.length}"`,
  );
  return short.slice(0, SHOWN_CHARS_MAX);
}

async function listen(server: Server): Promise<string> {
  server.keepAliveTimeout = 120_000;
  await new Promise<void>((resolve) => server.listen({ host: "127.0.0.1", port: 0, backlog: 4_096 }, resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the mock has no TCP address");
  return `http://127.0.0.1:${address.port}`;
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) if (chunk instanceof Buffer) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
