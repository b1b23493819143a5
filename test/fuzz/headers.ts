/** Headers of hostile requests beside credential and content: what routes read, what proxies trust, what is too much. */
import type { Random } from "../../bench/adversary/random.ts";
import type { Names } from "./names.ts";
import { hostileText } from "./texts.ts";

export type DrawnHeaders = {
  lines: readonly (readonly [name: string, value: string])[];
  /** Whether HTTP allows them, and so many. */
  isValid: boolean;
};

/** Bytes that an HTTP server may refuse as too many. */
const HEADERS_BYTES_MAX = 8_000;

export function drawHeaders(names: Names, random: Random): DrawnHeaders {
  const lines: [string, string][] = [];
  while (random.chance(0.4)) lines.push(drawHeader(names, random));
  const bytes = lines.reduce((sum, [name, value]) => sum + name.length + value.length, 0);
  const isValid = bytes < HEADERS_BYTES_MAX && lines.every(([, value]) => !/[\0\r\n]/.test(value));
  return { lines, isValid };
}

function drawHeader({ own, other }: Names, random: Random): [string, string] {
  const [name, values] = random.pick([...ROUTED, ...TRUSTED]);
  const kind = random.weighted([
    ["listed", 80],
    ["any", 12],
    ["split", 3],
    ["large", 3],
    ["run", 6],
  ]);
  if (kind === "run") return ["x-fanout-run", random.pick([other.id, own.id, "", "a".repeat(500), "../x"])];
  if (kind === "split") return [name, `a${random.pick(["\r\n", "\n", "\r", "\0"])}x-injected: 1`];
  if (kind === "large") return [name, "v".repeat(random.pick([7_000, 70_000, 400_000]))];
  if (kind === "any")
    return [
      name,
      Buffer.from(hostileText(random))
        .toString("latin1")
        .replace(/[\0\r\n]/g, " "),
    ];
  return [name, random.pick(values)];
}

type Listed = readonly [name: string, values: readonly string[]];

/** Headers that routes read. */
const ROUTED: readonly Listed[] = [
  ["idempotency-key", ["a", "a", "", "k".repeat(300), "é", "a b", "__proto__"]],
  ["prefer", ["respond-async", "respond-async, wait=0", "wait=-1", "return=minimal", ",,,"]],
  ["accept", ["application/x-ndjson", "text/event-stream", "text/plain", "text/markdown", "*/*;q=9", "", ","]],
  ["last-event-id", ["0", "-1", "1e309", "99999999999999999999", "a"]],
  [
    "range",
    ["bytes=0-0", "bytes=-1", "bytes=5-1", "bytes=0-99999999999999999999", "bytes=0-1,2-3", "lines=1-2", "bytes="],
  ],
  ["if-range", ['"x"', "a", "Mon, 23 Nov 2026 00:00:00 GMT"]],
  ["x-request-id", ["a", "é", "a".repeat(65), "../x", "<b>"]],
  ["x-fanout-replay", ["1", "x"]],
  ["anthropic-version", ["2023-06-01", "x"]],
  ["origin", ["null", "http://evil.example", "http://127.0.0.1"]],
  ["traceparent", ["00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "ff-x"]],
];

/** Headers by which requests claim to be something else. */
const TRUSTED: readonly Listed[] = [
  ["x-http-method-override", ["DELETE", "PATCH", "GET"]],
  ["x-method-override", ["DELETE"]],
  ["x-original-url", ["/runs", "/metrics"]],
  ["x-rewrite-url", ["/upstreams"]],
  ["x-forwarded-for", ["127.0.0.1", "::1"]],
  ["x-forwarded-host", ["evil.example"]],
  ["x-forwarded-proto", ["https", "javascript"]],
  ["cf-connecting-ip", ["127.0.0.1"]],
  ["forwarded", ["for=127.0.0.1;host=evil"]],
  ["cookie", ["token=a; admin=1", "c".repeat(4_000)]],
  ["referer", ["http://127.0.0.1/ui"]],
  ["expect", ["100-continue"]],
  ["te", ["trailers"]],
  ["x-api-key", ["a", "fo-run-a.b.c"]],
  ["accept-encoding", ["gzip", "br"]],
];
