/**
 * The client's place in a trace of its own: the headers `traceparent` and `tracestate`
 * (https://www.w3.org/TR/trace-context/). Headers that the standard calls invalid are as good as absent.
 */
import { TRACESTATE_CHARS_MAX, TRACESTATE_MEMBER_CHARS_MAX, TRACESTATE_MEMBERS_MAX } from "./limits.ts";

/** `parent`: a `traceparent` of version 00. `state`: the `tracestate` beside it; absent = there is none that is valid. */
export type TraceContext = { parent: string; state?: string };

/** A later version may append fields after a dash. */
const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const VERSION = "00";
const NO_TRACE = "0".repeat(32);
const NO_SPAN = "0".repeat(16);
/** The flags that versions up to 00 of level 2 define: sampled, and that the trace's id is random. */
const KNOWN_FLAGS = 0x03;
const SAMPLED = 0x01;

/** What the headers say; null if there is no valid `traceparent`: then `tracestate` says nothing either. */
export function traceContextOf(traceparent: string | undefined, tracestate: string | undefined): TraceContext | null {
  const parts = TRACEPARENT.exec(traceparent?.trim() ?? "");
  if (parts === null) return null;
  const [, version = "", traceId = "", spanId = "", flags = "", more] = parts;
  if (version === "ff" || (version === VERSION && more !== undefined)) return null;
  if (traceId === NO_TRACE || spanId === NO_SPAN) return null;
  const known = (Number.parseInt(flags, 16) & KNOWN_FLAGS).toString(16).padStart(2, "0");
  const parent = `${VERSION}-${traceId}-${spanId}-${known}`;
  const state = stateOf(tracestate ?? "");
  return state === null ? { parent } : { parent, state };
}

/** The client's trace, 32 hexadecimal digits. */
export function traceIdOf({ parent }: TraceContext): string {
  return parent.slice(3, 35);
}

/** The client's span, 16 hexadecimal digits. */
export function spanIdOf({ parent }: TraceContext): string {
  return parent.slice(36, 52);
}

/** Whether the client says that it records its span. */
export function isSampled({ parent }: TraceContext): boolean {
  return (Number.parseInt(parent.slice(53), 16) & SAMPLED) !== 0;
}

/**
 * Whether spans are put into the client's trace. One that the client does not record would lack their parent; and code in a
 * sandbox must not hide its calls from the operator by a flag. So such a trace gets links only.
 */
export function isRecorded(client: TraceContext | null | undefined): client is TraceContext {
  return client != null && isSampled(client);
}

/** Of the clients whose trace may have a span, nearest first, the trace that it is exported in; null = the run's own. */
export function clientTraceId(...clients: readonly (TraceContext | null | undefined)[]): string | null {
  const client = clients.find(isRecorded);
  return client === undefined ? null : traceIdOf(client);
}

/** Header of an answer: the id of the trace in which the spans of its calls are exported, 32 hexadecimal digits. */
export const TRACE_HEADER = "x-fanout-trace";

/** What the id of a run's own trace is the beginning of the SHA-256 of. */
export function traceSeed(runId: string): string {
  return `trace ${runId}`;
}

/** The id of the trace whose seed has this hash, as hexadecimal digits. */
export function traceIdIn(hash: string): string {
  return hash.slice(0, 32);
}

/** The name of an attempt's span within its run; executors know it, and exports. */
export function attemptKey(attemptId: string): string {
  return `attempt ${attemptId}`;
}

/** The text whose SHA-256 begins with the id of a span. */
export function spanSeed(runId: string, key: string): string {
  return `span ${runId} ${key}`;
}

/** The id of the span whose seed has this hash, as hexadecimal digits. */
export function spanIdIn(hash: string): string {
  return hash.slice(0, 16);
}

/** The context that a span of the same trace passes to what it calls. */
export function contextUnder(context: TraceContext, spanId: string): TraceContext {
  const parent = `${VERSION}-${traceIdOf(context)}-${spanId}-${context.parent.slice(53)}`;
  return { ...context, parent };
}

/** A vendor's key, alone or after a tenant's name and `@`; and what its value may be. */
const KEY = /^(?:[a-z][a-z0-9_*/-]{0,255}|[a-z0-9][a-z0-9_*/-]{0,240}@[a-z][a-z0-9_*/-]{0,13})$/;
const VALUE = /^[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/;

/** The list as it is passed along, within its bound; null if it is invalid or empty. */
function stateOf(header: string): string | null {
  const members = header
    .split(",")
    .map((member) => member.replace(/^[ \t]+|[ \t]+$/g, ""))
    .filter((member) => member !== "");
  const keys = new Set<string>();
  for (const member of members) {
    const at = member.indexOf("=");
    const key = member.slice(0, Math.max(0, at));
    if (!KEY.test(key) || !VALUE.test(member.slice(at + 1)) || keys.has(key)) return null;
    keys.add(key);
  }
  if (members.length === 0 || members.length > TRACESTATE_MEMBERS_MAX) return null;
  const kept = withinBound(members);
  return kept.length === 0 ? null : kept.join(",");
}

/** Leaves out long members first, then the last ones, which are the oldest: as the standard says. */
function withinBound(members: readonly string[]): string[] {
  const charsOf = (some: readonly string[]): number => some.reduce((sum, { length }) => sum + length + 1, -1);
  if (charsOf(members) <= TRACESTATE_CHARS_MAX) return [...members];
  const kept = members.filter(({ length }) => length <= TRACESTATE_MEMBER_CHARS_MAX);
  while (charsOf(kept) > TRACESTATE_CHARS_MAX) kept.pop();
  return kept;
}
