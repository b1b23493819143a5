/** Sends requests to the gateway, and turns failures into messages that say what to do. */
import { z } from "zod";
import type { Credential } from "../credential.ts";
import { printable } from "../text/printable.ts";

/** Bytes that are read of an error's body. */
const ERROR_BYTES_MAX = 64 * 1024;

/** `url` without a slash at its end. */
export type Gateway = { url: string; credential: Credential };

export type Source = { gateway: Gateway; runId: string };

export type Fetch = (url: string, init: { headers: Record<string, string>; signal: AbortSignal }) => Promise<Response>;

/** Why a request failed, as a message for the user. `isTransient`: the same request may succeed later. */
export type Problem = { message: string; isTransient: boolean };

export type Answer = { ok: true; response: Response } | { ok: false; problem: Problem };

type Request = { path: string; type: string; headers?: Record<string, string>; signal: AbortSignal };

/** Sends a GET. Any response other than 200 with the media type `type` is a problem. */
export async function ask(gateway: Gateway, request: Request, fetch: Fetch): Promise<Answer> {
  const { path, type, headers, signal } = request;
  const authorization = `Bearer ${gateway.credential.value}`;
  let response: Response;
  try {
    const sent = { accept: type, authorization, ...headers };
    response = await fetch(`${gateway.url}${path}`, { headers: sent, signal });
  } catch (error) {
    return { ok: false, problem: { message: unreachable(gateway.url, error), isTransient: true } };
  }
  const got = response.headers.get("content-type") ?? "nothing";
  if (response.status === 200 && got.startsWith(type)) return { ok: true, response };
  if (response.status === 200) {
    await response.body?.cancel();
    const message = `${gateway.url}${path} is not a fanout gateway: expected ${type}, got ${printable(got)}.`;
    return { ok: false, problem: { message, isTransient: false } };
  }
  return { ok: false, problem: await refused(gateway, path, response) };
}

/** The id of the run that the token belongs to. */
export async function ownRun(
  gateway: Gateway,
  fetch: Fetch,
  signal: AbortSignal,
): Promise<{ ok: true; id: string } | { ok: false; problem: Problem }> {
  const answer = await ask(gateway, { path: "/run", type: "application/json", signal }, fetch);
  if (!answer.ok) return answer;
  const run = z.object({ id: z.string() }).safeParse(parseJson(await answer.response.text()));
  if (run.success) return { ok: true, id: run.data.id };
  return { ok: false, problem: { message: `The reply of ${gateway.url}/run has no run id.`, isTransient: false } };
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

/** The message for a response that is not a log. */
export function noLog({ gateway, runId }: Source): string {
  return `${gateway.url} sent a line that does not belong to the log of run ${printable(runId)}.`;
}

/** The code of a connection error (`ECONNRESET`), or its message. */
function causeOf(error: unknown): string {
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

async function refused({ url, credential }: Gateway, path: string, response: Response): Promise<Problem> {
  const { status } = response;
  const said = errorMessage(await beginningOf(response));
  const because = said === "" ? "" : ` (${said})`;
  if (status === 401) {
    const message =
      `The gateway does not accept the credential from ${credential.from}${because}. ` +
      "Set FANOUT_TOKEN to the run's token, or ADMIN_KEY to the operator's key.";
    return { message, isTransient: false };
  }
  if (status === 404) {
    const whose = credential.isRunToken ? ` that the token from ${credential.from} may read` : "";
    return { message: `No such run${whose} at ${url}${because}.`, isTransient: false };
  }
  return { message: `GET ${path} returned ${status}${because}.`, isTransient: status === 429 || status >= 500 };
}

/** `error.message` of an error's body; otherwise the beginning of the body. */
function errorMessage(body: string): string {
  const parsed = z.object({ error: z.object({ message: z.string() }) }).safeParse(parseJson(body));
  return printable(parsed.success ? parsed.data.error.message : body);
}

async function beginningOf(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const read of readBody(response)) {
    // If the body is cut off, the received part is used.
    if ("chunk" in read) text += decoder.decode(read.chunk, { stream: true });
    if (text.length >= ERROR_BYTES_MAX) break;
  }
  return text;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
