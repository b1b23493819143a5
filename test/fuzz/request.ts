/**
 * The seeded grammar of hostile requests: the same seed, index and names make the same bytes. Most requests are nearly right,
 * because what is wrong in every place is refused by the first check.
 */
import { Random } from "../../bench/adversary/random.ts";
import { needsOf, type Needs } from "./authority.ts";
import { drawBody, type DrawnBody } from "./body.ts";
import { drawCredential, type Sender } from "./credential.ts";
import type { Operation, Surface } from "./document.ts";
import { drawFraming } from "./framing.ts";
import { drawHeaders } from "./headers.ts";
import { fieldWords, type Names } from "./names.ts";
import { drawTarget, UNDOCUMENTED } from "./target.ts";
import { upgradeHeaders, hostileFrames } from "./upgrade.ts";

export type HostileRequest = {
  index: number;
  /** What it was bent from, as the document names it. */
  operation: string;
  method: string;
  target: string;
  sender: Sender;
  /** The least credential that its target answers to. */
  needs: Needs;
  /** Everything that is sent. */
  bytes: Uint8Array;
  /** What the client does when it has sent it: waits for the answer, keeps silent for a moment, or breaks the connection. */
  ending: "waits" | "stalls" | "resets";
  /** What is sent once a WebSocket is open. */
  frames: Uint8Array | null;
  /** Whether the gateway gets to see it: the HTTP server itself may answer another one, or close the connection. */
  isHttp: boolean;
  /** Whether an answer may take as long as it likes. */
  mayWait: boolean;
};

/** Operations after which a run has ended, or is another one. */
const ENDING: ReadonlySet<string> = new Set(["DELETE /runs/{id}", "POST /runs/{id}/close", "PATCH /runs/{id}"]);
/** Routes that a run token does not open. */
const OPERATORS = /^\/(?:runs$|metrics|upstreams|cassettes)/;
const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"] as const;
/** Methods that the HTTP server of the runtime does not know, or keeps to itself. */
const STRANGE_METHODS = ["TRACE", "CONNECT", "FOO", "get", "POST\t", "PROPFIND", "M-SEARCH", ""] as const;
const KNOWN_METHODS: ReadonlySet<string> = new Set(METHODS);

/** Words of requests that ask the gateway to wait, or to keep the connection. */
const WAITS =
  /wait_ms|on_exhausted|deadline_ms|timeout_ms|\/events|confirm|flaky\/|sim\/slow|claim|stream|shadow|hedge/;

/** Draws the request of an index. */
export function drawRequest(
  surface: Surface,
  names: Names,
  { seed, index }: { seed: number; index: number },
): HostileRequest {
  const random = new Random(seed, index);
  const source = { random, schemas: surface.schemas, words: fieldWords(names) };
  const operation = random.chance(0.94)
    ? random.pick(surface.operations)
    : { method: random.pick(METHODS), path: random.pick(UNDOCUMENTED), isOpen: true, parameters: [], bodies: [] };
  const method = drawMethod(operation, random);
  const credential = drawCredential(names, { random, isOperators: OPERATORS.test(operation.path) });
  const isEnding = [...ENDING].some((ending) => ending.endsWith(` ${operation.path}`));
  // What the operator does to another run is its right, and would look like a leak.
  const others = credential.sender !== "operator";
  const target = drawTarget(operation, { names, source, others, isEnding });
  const extra = drawHeaders(names, random);
  const upgrades = random.chance(operation.path.endsWith("/events") ? 0.5 : 0.03);
  const body = takesBody(method, operation, random) && !upgrades ? drawBody(operation, source) : null;
  const framing = drawFraming(body?.bytes ?? null, random);
  const lines = [
    ["host", "gateway.test"] as const,
    ...credential.headers,
    ...contentHeaders(body),
    ...extra.lines.filter(([name]) => others || name !== "x-fanout-run"),
    ...framing.headers,
    ...(upgrades ? upgradeHeaders(random) : ([["connection", "close"]] as const)),
  ];
  const head = `${method} ${target.text} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`;
  const whole = Buffer.concat([Buffer.from(head, "latin1"), framing.bytes]);
  const resets = random.chance(0.03);
  const shown = `${target.text} ${Buffer.from(body?.bytes.subarray(0, 100_000) ?? []).toString("latin1")}`;
  return {
    ...{
      index,
      operation: `${operation.method} ${operation.path}`,
      method,
      target: target.text,
      sender: credential.sender,
      // Some servers take every upgrade for a GET.
      needs: needsOf(surface, { method: upgrades ? "GET" : method, target: target.text }),
    },
    bytes: resets ? whole.subarray(0, random.integer(1, whole.length)) : whole,
    ending: resets ? "resets" : framing.isShort ? "stalls" : "waits",
    frames: upgrades ? hostileFrames(random) : null,
    // The runtime itself refuses other upgrades than those with GET.
    isHttp:
      target.isValid &&
      extra.isValid &&
      framing.isValid &&
      KNOWN_METHODS.has(method) &&
      (!upgrades || method === "GET"),
    mayWait: WAITS.test(shown) || lines.some(([name, value]) => name === "accept" && value.includes("event-stream")),
  };
}

function drawMethod(operation: Operation, random: Random): string {
  if (random.chance(0.9)) return operation.method;
  return random.chance(0.9) ? random.pick(METHODS) : random.pick(STRANGE_METHODS);
}

function takesBody(method: string, { bodies }: Operation, random: Random): boolean {
  return bodies.length > 0 || random.chance(method === "GET" || method === "HEAD" ? 0.03 : 0.2);
}

function contentHeaders(body: DrawnBody | null): (readonly [string, string])[] {
  if (body === null) return [];
  const type = body.type === null ? [] : ([["content-type", body.type]] as const);
  return body.encoding === null ? [...type] : [...type, ["content-encoding", body.encoding]];
}
