/** Requests of the commands to the gateway: which one, with which credential, and what a failure means. */
import { z } from "zod";
import { findCredential, type Credential, type Places } from "../credential.ts";
import { Failure } from "../failure.ts";
import { parseJson } from "../text/json.ts";
import { printable } from "../text/printable.ts";
import { Named, RunPage } from "./documents.ts";

export const URL_DEFAULT = "http://127.0.0.1:8787";

/** Bytes that are read of an error's body. */
const ERROR_BYTES_MAX = 64 * 1024;

/** `url` has no slash at its end. */
export type Gateway = { url: string; credential: Credential };

/** Options of every command that sends requests. */
export const GATEWAY_OPTIONS = {
  url: { type: "string" },
  "token-file": { type: "string" },
  "env-file": { type: "string", multiple: true },
} as const;

/** What the help of a command says of them. */
export const GATEWAY_USAGE = "[--url URL] [--token-file FILE] [--env-file FILE]";

/** @param asked `operator`: only the operator's key will do. */
export function gatewayOf(
  {
    url,
    "token-file": tokenFile,
    "env-file": envFiles,
  }: { url?: string | undefined; "token-file"?: string | undefined; "env-file"?: string[] | undefined },
  places: Places,
  { operator }: { operator: boolean },
): Gateway {
  const named = url ?? (places.env["FANOUT_URL"]?.trim() || URL_DEFAULT);
  // Node 20 has no URL.parse.
  const place = URL.canParse(named) ? new URL(named) : null;
  if (place === null || !/^https?:$/.test(place.protocol)) {
    throw new Failure("The gateway's URL must begin with http:// or https:// (--url or FANOUT_URL).");
  }
  const credential = findCredential(
    { names: operator ? ["ADMIN_KEY"] : ["FANOUT_TOKEN", "ADMIN_KEY"], tokenFile, envFiles },
    places,
  );
  if (typeof credential === "string") throw new Failure(credential);
  // With the /v1 that OpenAI's clients want, it is the same gateway. Behind a query or a fragment, no path would reach it.
  return { url: `${place.origin}${place.pathname.replace(/\/+(v1\/*)?$/, "")}`, credential };
}

export type Fetch = (
  url: string,
  init: {
    method: string;
    headers: Record<string, string>;
    body: string | null;
    redirect: "manual";
    signal: AbortSignal;
  },
) => Promise<Response>;

/** @param lines JSON Lines, as the body. `accept`: the media type that the response must have; absent = any. */
type Sent = {
  method?: string;
  json?: unknown;
  lines?: string;
  accept?: string;
  headers?: Record<string, string>;
  signal?: AbortSignal;
};

/**
 * Why a request failed, as a message for the user. `isTransient`: the same request may succeed later. `status` null: there was no
 * response. `because`: what the response says, in brackets behind a space; "" = nothing.
 */
export type Problem = { message: string; isTransient: boolean; status: number | null; because: string };

export type Answer = { ok: true; response: Response } | { ok: false; problem: Problem };

/**
 * Sends a request. A response has the status 200 or 201; anything else is a problem. Redirects are not followed, so that the token goes
 * only to the server that was named.
 */
export async function ask(
  gateway: Gateway,
  path: string,
  sent: Sent,
  fetch: Fetch = globalThis.fetch,
): Promise<Answer> {
  const { json: value, lines, accept, signal = new AbortController().signal } = sent;
  const body = lines ?? (value === undefined ? null : JSON.stringify(value));
  const method = sent.method ?? (body === null ? "GET" : "POST");
  const headers = {
    ...(accept === undefined ? {} : { accept }),
    authorization: `Bearer ${gateway.credential.value}`,
    ...(body === null ? {} : { "content-type": lines === undefined ? "application/json" : "application/x-ndjson" }),
    ...sent.headers,
  };
  let response: Response;
  try {
    response = await fetch(`${gateway.url}${path}`, { method, headers, body, redirect: "manual", signal });
  } catch (error) {
    return problem(unreachable(gateway.url, error), { status: null, isTransient: true });
  }
  const { status } = response;
  if (status !== 200 && status !== 201)
    return await refused(gateway, `${method} ${path.replace(/\?.*/, "")}`, response);
  const got = response.headers.get("content-type") ?? "nothing";
  if (accept === undefined || got.startsWith(accept)) return { ok: true, response };
  await response.body?.cancel();
  return problem(`${gateway.url}${path} is not a fanout gateway: expected ${accept}, got ${printable(got)}.`, {
    status,
  });
}

/** The response to a request. Throws what is wrong. */
export async function request(gateway: Gateway, path: string, sent: Sent = {}): Promise<Response> {
  const answer = await ask(gateway, path, sent);
  if (answer.ok) return answer.response;
  sent.signal?.throwIfAborted();
  throw new Failure(answer.problem.message);
}

function problem(
  message: string,
  { status, isTransient = false, because = "" }: { status: number | null; isTransient?: boolean; because?: string },
): Answer {
  return { ok: false, problem: { message, isTransient, status, because } };
}

/** The code of a connection error (`ECONNRESET`), or its message. */
export function causeOf(error: unknown): string {
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  if (typeof cause === "object" && cause !== null && "code" in cause && typeof cause.code === "string") {
    return printable(cause.code);
  }
  return printable(cause instanceof Error ? cause.message : String(cause));
}

function unreachable(url: string, error: unknown): string {
  const cause = causeOf(error);
  if (cause !== "ECONNREFUSED") return `Cannot reach ${url}: ${cause}.`;
  return `Nothing listens at ${url}. Start the gateway with npm start, or name another one with --url or FANOUT_URL.`;
}

async function refused({ credential }: Gateway, what: string, response: Response): Promise<Answer> {
  const { status } = response;
  const said = errorMessage(await beginningOf(response));
  const because = said === "" ? "" : ` (${said})`;
  const isTransient = status === 429 || status >= 500;
  if (status !== 401)
    return problem(`${printable(what)} returned ${status}${because}.`, { status, isTransient, because });
  const message =
    `The gateway does not accept the credential from ${credential.from}${because}. ` +
    "Set FANOUT_TOKEN to the run's token, or ADMIN_KEY to the operator's key.";
  return problem(message, { status, because });
}

/** `error.message` of an error's body; otherwise the beginning of the body. */
function errorMessage(body: string): string {
  const parsed = z.object({ error: z.object({ message: z.string() }) }).safeParse(parseJson(body));
  return printable(parsed.success ? parsed.data.error.message : body);
}

/** The beginning of a body as text; if it is cut off, the part that was received. */
async function beginningOf(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const read of readBody(response)) {
    if ("chunk" in read) text += decoder.decode(read.chunk, { stream: true });
    if (text.length >= ERROR_BYTES_MAX) break;
  }
  return text;
}

/** A body's chunks; if the connection is lost, then the cause as the last element. */
export async function* readBody(response: Response): AsyncGenerator<{ chunk: Uint8Array } | { cause: string }> {
  if (response.body === null) return;
  const reader = response.body.getReader();
  try {
    for (;;) {
      const read = await reader.read().catch((error: unknown) => causeOf(error));
      if (typeof read === "string") yield { cause: read };
      if (typeof read === "string" || read.done) return;
      yield { chunk: read.value };
    }
  } finally {
    // A reader that stops early releases the connection. Cancelling a lost connection fails; that is expected.
    await reader.cancel().catch(() => {});
  }
}

/** The JSON object of a response. */
export async function json(gateway: Gateway, path: string, sent?: Sent): Promise<object> {
  const response = await request(gateway, path, sent);
  const value = parseJson(await response.text());
  if (value !== null && typeof value === "object") return value;
  throw new Failure(`${gateway.url}${path} did not answer with JSON: is it a fanout gateway?`);
}

/** The id of the run that the token belongs to. */
export async function ownRunId(gateway: Gateway, signal?: AbortSignal): Promise<string> {
  const { id } = Named.parse(await json(gateway, "/run", signal === undefined ? {} : { signal }));
  if (id === "") throw new Failure(`The reply of ${gateway.url}/run has no run id.`);
  return id;
}

/** What `fanout runs` shows of an id. */
export const ID_CHARS_SHOWN = 16;

/** The beginning of a run's id, which names its jurisdiction if there is one. */
export const BEGINNING = /^run_(?:[0-9a-f]{8,63}|(?:eu|fedramp|us)_[0-9a-f]{4,63})$/;

/** The whole id of a run that is named by the beginning of it, as `fanout runs` shows it. */
export async function wholeId(gateway: Gateway, named: string, signal: AbortSignal): Promise<string> {
  if (!BEGINNING.test(named)) return named;
  const ids = gateway.credential.isRunToken
    ? [await ownRunId(gateway, signal)]
    : RunPage.parse(await json(gateway, "/runs?limit=100&view=summary", { signal })).data.map(({ id }) => id);
  const found = ids.filter((id) => id.startsWith(named));
  if (found.length > 1)
    throw new Failure(`${printable(named)} is the beginning of ${found.length} ids: give more of it.`);
  return found[0] ?? named;
}
