/** The request target of a hostile request: its path with ids of this run, of another, or of none, and its query. */
import * as fc from "fast-check";
import type { Random } from "../../bench/adversary/random.ts";
import type { Operation } from "./document.ts";
import { pathValue, type Names, type Party } from "./names.ts";
import { drawnFrom, hostileText } from "./texts.ts";
import { valueFor, type Source } from "./values.ts";

export type DrawnTarget = {
  /** As it is sent. */
  text: string;
  /** Whether HTTP allows it: of another one any answer may come, or none. */
  isValid: boolean;
};

/** Paths that no document names: what scanners ask for, and what servers give away by mistake. */
export const UNDOCUMENTED = [
  "/probe",
  "/_probe/1",
  "/_probe/hold?ms=1",
  "/favicon.ico",
  "/robots.txt",
  "/.env",
  "/.dev.vars",
  "/.git/config",
  "/wrangler.toml",
  "/index.mjs",
  "/v1",
  "/v1/",
  "/v1/engines",
  "/v1/responses",
  "/v1/assistants",
  "/v1/images/generations",
  "/v1/audio/speech",
  "/v1/messages/batches",
  "/runs/",
  "/groups",
  "/dag/validate/x",
  "/rollout",
  "/rollout//llm_query",
  "/ui/../.dev.vars",
  "/ui/app.js.map",
  "/stubs/..%2f..%2f.dev.vars",
  "/stubs/__proto__",
  "/stubs/constructor",
  "/metrics/",
  "/admin",
  "/_internal",
  "/openapi.json/",
  "/llm_query/",
  "/tool_call/x",
] as const;

/** `others`: whether ids of the other run are used. */
export function drawTarget(
  { path, parameters }: Operation,
  { names, source, others, isEnding }: { names: Names; source: Source; others: boolean; isEnding: boolean },
): DrawnTarget {
  const { random } = source;
  const filled = path.replace(/\{(\w+)\}/g, (_, parameter: string) => {
    const party = others && random.chance(0.4) ? names.other : ownParty(names, isEnding, random);
    if (random.chance(0.25)) return hostileSegment(random);
    // A rollout's id may be the token, which then is the credential.
    const isToken = path.startsWith("/rollout/") && party !== names.other && random.chance(0.5);
    return isToken ? names.own.token : encodeURIComponent(pathValue(path, parameter, party));
  });
  const asked = parameters.filter((parameter) => parameter.in === "query" && random.chance(0.3));
  const pairs = asked.flatMap(({ name, schema }) => {
    const value = random.chance(0.75) ? String(valueFor(schema, source, name)) : hostileText(random);
    const pair = `${name}=${encoded(value, random)}`;
    return random.chance(0.1) ? [pair, `${name}=1`] : [pair];
  });
  if (random.chance(0.05)) pairs.push(random.pick(QUERIES));
  const bent = random.chance(0.08) ? bentPath(filled, random) : filled;
  const text = pairs.length === 0 ? bent : `${bent}?${pairs.join("&")}`;
  return { text, isValid: isValid(text) };
}

/** What ends a run ends one that the next requests do not need. */
function ownParty({ own }: Names, isEnding: boolean, random: Random): Party {
  return isEnding || random.chance(0.1) ? { ...own, id: own.things.child } : own;
}

const QUERIES = [
  "",
  "&&&",
  "=",
  "__proto__=1",
  "a=%00",
  "a=%ff",
  "a=%",
  "wait_ms",
  "quote=1&quote=0",
  "?",
  "a=+%2b",
] as const;

const SEGMENTS = [
  "..",
  ".",
  "%2e%2e",
  "%2e%2e%2f%2e%2e",
  "..%2f",
  "..%5c",
  "%00",
  "a%00b",
  "%ff",
  "%c0%af",
  "%",
  "%zz",
  "%25%30%30",
  "%0d%0aset-cookie:a=b",
  "__proto__",
  "constructor",
  "undefined",
  "-1",
  "1e309",
  "%20",
  ";a=b",
  "*",
  "~root",
  "%F0%9F%8F%B4",
  "a".repeat(300),
  "a".repeat(6_000),
] as const;

function hostileSegment(random: Random): string {
  return random.chance(0.8) ? random.pick(SEGMENTS) : encodeURIComponent(drawnFrom(fc.webSegment(), random));
}

function encoded(value: string, random: Random): string {
  const whole = encodeURIComponent(value.toWellFormed());
  return random.chance(0.9)
    ? whole
    : Buffer.from(value)
        .toString("latin1")
        .replace(/[^\x21-\xff]|#/g, "+");
}

function bentPath(path: string, random: Random): string {
  const kind = random.weighted([
    ["double", 15],
    ["dots", 15],
    ["slash", 15],
    ["case", 10],
    ["escape", 20],
    ["semicolon", 5],
    ["absolute", 8],
    ["raw", 12],
  ]);
  if (kind === "double") return path.replaceAll("/", "//");
  if (kind === "dots") return `/ui/..${path}`;
  if (kind === "slash") return `${path}/`;
  if (kind === "case") return path.toUpperCase();
  if (kind === "semicolon") return `${path};jsessionid=1`;
  if (kind === "absolute") return `http://elsewhere.example${path}`;
  if (kind === "raw")
    return random.pick(["//elsewhere.example/x", "/a b", "/\xff", "/\\..\\..", `/#${path}`, path.slice(1)]);
  const letter = random.integer(1, path.length - 1);
  const code = path.charCodeAt(letter).toString(16).padStart(2, "0");
  return `${path.slice(0, letter)}%${code}${path.slice(letter + 1)}`;
}

/** A path of the signs that a URL has. Others are for the HTTP server, which is not the gateway's. */
function isValid(text: string): boolean {
  return /^\/[\w.~!$&'()*+,;=:@%/?-]*$/.test(text);
}
