/** What must hold of every answer, whatever was sent. */
import { z } from "zod";
import { isAnthropicPath } from "../../src/http/anthropic-error.ts";
import { isDialectPath } from "../../src/http/dialect-path.ts";
import { failureForm } from "../support/failure-form.ts";
import { authorityFault } from "./authority.ts";
import { pathOf, servedPathOf } from "./path.ts";
import type { HostileRequest } from "./request.ts";
import type { Answer, Exchange } from "./wire.ts";

/** A text that must not be shown, and what it is. */
export type Secret = { what: string; text: string };

/** What an answer shows of the gateway's own code or disk. */
const INSIDES: readonly (readonly [what: string, pattern: RegExp])[] = [
  ["a stack trace", /(?:\n|\\n)\s+at (?:async )?[\w.$<>#]+ \(?[^\n]*:\d+:\d+/],
  ["the path of a file", /gateway\.mjs|\/node_modules\/|\/tmp\/fanout-|durable-objects\/|miniflare/i],
  ["an internal error", /an internal error, logged under|"code":"internal"|internal error; reference/],
];

/** Statuses of failures that are no fault of the gateway: an upstream's, or a refusal to take more work now. */
const UPSTREAM_STATUSES: ReadonlySet<number> = new Set([502, 503, 504]);
const UPSTREAM_CODES: ReadonlySet<unknown> = new Set([
  "upstream_error",
  "upstream_truncated",
  "schema_violation",
  "upstream_timeout",
  "deadline_exceeded",
  "overloaded",
]);

const openAiError = z.looseObject({ error: z.looseObject({ message: z.string(), type: z.string() }) });
const dialectFailure = z.looseObject({ error: z.string().min(1) });
const anthropicFailure = z.looseObject({
  type: z.literal("error"),
  error: z.looseObject({ type: z.string(), message: z.string().min(1) }),
});
const coded = z.looseObject({ error: z.looseObject({ code: z.string(), variable: z.unknown().optional() }) });

/** What is wrong with the answer to a request; nothing = []. */
export function faultsOf(request: HostileRequest, exchange: Exchange, secrets: readonly Secret[]): string[] {
  if (exchange.kind !== "answer") {
    const mayLack = !request.isHttp || request.ending !== "waits" || request.mayWait || request.frames !== null;
    return mayLack ? [] : [`has no answer: the connection was ${exchange.kind}`];
  }
  const { answer } = exchange;
  const shown = `${[...answer.headers].map(([name, value]) => `${name}: ${value}\n`).join("")}\n${answer.body.toString("utf8")}`;
  const letIn = authorityFault(request, answer.status);
  return [
    ...(letIn === null ? [] : [letIn]),
    ...secrets.filter(({ text }) => shown.includes(text)).map(({ what }) => `shows ${what}`),
    ...INSIDES.filter(([, pattern]) => !mayShow(request, pattern) && pattern.test(shown)).map(
      ([what]) => `shows ${what}`,
    ),
    ...(answer.headers.has("x-injected") || answer.headers.has("set-cookie") ? ["has a header of the request's"] : []),
    ...(request.isHttp && request.ending === "waits" ? formFaults(request, answer) : []),
  ];
}

/** Stubs, scripts and guides name files; an error quotes what the request has. */
function mayShow({ target, bytes }: HostileRequest, pattern: RegExp): boolean {
  return /^\/(?:stubs|ui|docs|openapi\.json)/.test(target) || pattern.test(Buffer.from(bytes).toString("latin1"));
}

function formFaults(request: HostileRequest, answer: Answer): string[] {
  const { status, headers } = answer;
  if (status === 101)
    return /^\/runs\/[^/]+\/events/.test(servedPathOf(request.target)) ? [] : ["upgrades a route that has no events"];
  if (Number.isNaN(status) || status < 200) return ["has no status of HTTP"];
  const faults = headers.has("x-request-id") ? [] : ["has no x-request-id"];
  if (status < 400 || request.method === "HEAD" || !answer.isWhole) return faults;
  const body = jsonIn(answer.body);
  // Some servers resolve the dots of a path before the gateway sees it.
  const paths = [pathOf(request.target), servedPathOf(request.target)];
  const path = paths.find((shown) => hasForm(shown, body));
  if (path === undefined) return [...faults, `has no error's form at ${status}`];
  if (status >= 500 && !isDocumented(path, status, body)) faults.push(`is ${status}`);
  if ((status === 429 || status === 503) && !isRelayed(path, body) && !headers.has("retry-after")) {
    faults.push(`is ${status} without retry-after`);
  }
  return faults;
}

function hasForm(path: string, body: unknown): boolean {
  if (isDialectPath(path)) return dialectFailure.safeParse(body).success;
  if (isAnthropicPath(path)) return anthropicFailure.safeParse(body).success;
  if (path === "/mcp" && z.looseObject({ jsonrpc: z.literal("2.0") }).safeParse(body).success) return true;
  return failureForm.safeParse(body).success || isRelayed(path, body);
}

/** Whether an error may be the upstream's own, which `/v1` relays as it is. */
function isRelayed(path: string, body: unknown): boolean {
  return path.startsWith("/v1/") && openAiError.safeParse(body).success && !failureForm.safeParse(body).success;
}

function isDocumented(path: string, status: number, body: unknown): boolean {
  // The clients of dialects know one server error: a call that failed.
  if (isDialectPath(path)) return status === 500 || UPSTREAM_STATUSES.has(status);
  if (isRelayed(path, body)) return true;
  const parsed = coded.safeParse(body);
  const code = parsed.success ? parsed.data.error.code : null;
  // Of a gateway without R2, where a request needs a file.
  if (status === 500 && parsed.success && code === "misconfigured") return parsed.data.error.variable === "FILES";
  return UPSTREAM_STATUSES.has(status) && UPSTREAM_CODES.has(code);
}

function jsonIn(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString("utf8"));
  } catch {
    return undefined;
  }
}
