/** Requests of the commands to the gateway: which one, with which credential, and what a failure means. */
import { findCredential, type Places } from "../credential.ts";
import { Failure } from "../failure.ts";
import { parseJson } from "../text/json.ts";
import { printable } from "../text/printable.ts";
import { Named, Refusal, RunPage } from "./documents.ts";

const URL_DEFAULT = "http://127.0.0.1:8787";

/** `url` has no slash at its end. */
export type Gateway = { url: string; token: string; from: string; isRunToken: boolean };

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
  const place = URL.canParse(url ?? "") ? url : (url ?? (places.env["FANOUT_URL"]?.trim() || URL_DEFAULT));
  if (place === undefined || !URL.canParse(place) || !/^https?:/.test(place)) {
    throw new Failure("The gateway's URL must begin with http:// or https:// (--url or FANOUT_URL).");
  }
  const found = findCredential(
    { names: operator ? ["ADMIN_KEY"] : ["FANOUT_TOKEN", "ADMIN_KEY"], tokenFile, envFiles },
    places,
  );
  if (typeof found === "string") throw new Failure(found);
  // With the /v1 that OpenAI's clients want, it is the same gateway.
  return { url: place.replace(/\/+(v1\/*)?$/, ""), token: found.value, from: found.from, isRunToken: found.isRunToken };
}

/**
 * A response with status 200 or 201. Redirects are not followed, so that the token goes only to the server that was named.
 * @param request `lines`: JSON Lines, as the body.
 */
export async function request(
  gateway: Gateway,
  path: string,
  {
    method,
    json,
    lines,
    headers = {},
    signal,
  }: { method?: string; json?: unknown; lines?: string; headers?: Record<string, string>; signal?: AbortSignal } = {},
) {
  let response: Response;
  const body = lines ?? (json === undefined ? null : JSON.stringify(json));
  const mediaType = lines === undefined ? "application/json" : "application/x-ndjson";
  const type = body === null ? {} : { "content-type": mediaType };
  const sent = { authorization: `Bearer ${gateway.token}`, ...type, ...headers };
  try {
    const init = { method: method ?? (body === null ? "GET" : "POST"), headers: sent, body };
    response = await fetch(`${gateway.url}${path}`, { ...init, redirect: "manual", ...(signal ? { signal } : {}) });
  } catch (error) {
    if (signal?.aborted) throw error;
    const cause = error instanceof Error ? error.cause : null;
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : "no connection";
    if (code !== "ECONNREFUSED") throw new Failure(`Cannot reach ${gateway.url}: ${printable(code)}.`);
    throw new Failure(
      `Nothing listens at ${gateway.url}. Start the gateway with npm start, or name another with --url.`,
    );
  }
  if (response.status === 200 || response.status === 201) return response;
  const because = printable(Refusal.parse(parseJson(await response.text())).error.message);
  const what = `${method ?? (body === null ? "GET" : "POST")} ${printable(path.replace(/\?.*/, ""))} returned ${response.status}`;
  const hint = response.status === 401 ? ` The credential is from ${gateway.from}.` : "";
  throw new Failure(`${what}${because === "" ? "" : `: ${because}`}.${hint}`);
}

/** The JSON object of a response. */
export async function json(gateway: Gateway, path: string, options?: Parameters<typeof request>[2]): Promise<object> {
  const response = await request(gateway, path, options);
  const value = parseJson(await response.text());
  if (value !== null && typeof value === "object") return value;
  throw new Failure(`${gateway.url}${path} did not answer with JSON: is it a fanout gateway?`);
}

/** What `fanout runs` shows of an id. */
export const ID_CHARS_SHOWN = 16;

/** The beginning of a run's id, which names its jurisdiction if there is one. */
export const BEGINNING = /^run_(?:[0-9a-f]{8,63}|(?:eu|fedramp|us)_[0-9a-f]{4,63})$/;

/** The whole id of a run that is named by the beginning of it, as `fanout runs` shows it. */
export async function wholeId(gateway: Gateway, named: string, signal: AbortSignal): Promise<string> {
  if (!BEGINNING.test(named)) return named;
  const runs = gateway.isRunToken
    ? [Named.parse(await json(gateway, "/run", { signal }))]
    : RunPage.parse(await json(gateway, "/runs?limit=100&view=summary", { signal })).data;
  const found = runs.map(({ id }) => id).filter((id) => id.startsWith(named));
  if (found.length > 1)
    throw new Failure(`${printable(named)} is the beginning of ${found.length} ids: give more of it.`);
  return found[0] ?? named;
}
