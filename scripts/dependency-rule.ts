/**
 * Which part of the gateway may import which. The core (run, gate) imports only itself, the rules
 * over answers and the shared words. The edges import the core; only the edges import the platform. The command and the run
 * page are clients: of the gateway they import next to nothing. The table
 * below is the rule; the functions after it read imports and look them up.
 */
import { posix } from "node:path";

/** A part of the code: files that obey one line of the table. The first pattern that fits a path decides. */
const PARTS: readonly (readonly [part: string, pattern: RegExp])[] = [
  ["words", /^src\/(at-first-use|errors|limits|answer|call|labels|trace-context|version|jurisdiction|newer-rows)\.ts$/],
  ["renewed", /^src\/renewed\//],
  ["pattern", /^src\/text\/pattern\//],
  ["tokens", /^src\/text\/tokens\//],
  ["bytes", /^src\/text\/bytes\//],
  ["json", /^src\/text\/json\//],
  ["images", /^src\/text\/images\//],
  ["sse", /^src\/text\/sse\//],
  ["schema", /^src\/text\/schema\//],
  ["search", /^src\/text\/needle\.ts$/],
  ["contexts", /^src\/contexts\//],
  ["recordings", /^src\/recordings\//],
  ["answers", /^src\/run\/answers\//],
  ["core", /^src\/(run|gate)\//],
  ["formats", /^src\/providers\/formats\//],
  ["simulated", /^src\/providers\/simulated\//],
  ["providers", /^src\/providers\//],
  ["files", /^src\/files\//],
  ["batch", /^src\/batch\//],
  ["picture", /^src\/log\/picture\//],
  ["log", /^src\/log\//],
  ["contract", /^src\/contract\//],
  ["tools", /^src\/tools\//],
  ["methods", /^src\/objects\/methods\//],
  ["address", /^src\/objects\/address\.ts$/],
  ["clients", /^src\/objects\/clients\//],
  ["executors", /^src\/executors\//],
  ["env", /^src\/(env|config-warnings)\.ts$/],
  ["context", /^src\/http\/context\.ts$/],
  ["auth", /^src\/http\/auth\//],
  ["replies", /^src\/http\/replies\//],
  ["docs", /^src\/http\/docs\//],
  ["openapi", /^src\/http\/openapi\//],
  ["app", /^src\/http\/(app|cors)\.ts$/],
  ["http", /^src\/http\//],
  ["entrypoints", /^src\/entrypoints\//],
  ["index", /^src\/index\.ts$/],
  ["alarm-time", /^durable-objects\/(alarm-time|schema-version)\.ts$/],
  ["webhook-post", /^durable-objects\/webhook-post\.ts$/],
  ["objects", /^durable-objects\/[^/]+\//],
  ["command", /^cli\//],
  ["page", /^ui\//],
];

type Allowed = {
  /** Parts whose code may be used; a part may always use itself and the words. */
  parts: readonly string[];
  /** Parts of which only types may be used. */
  types?: readonly string[];
  packages: readonly RegExp[];
};

const ZOD = /^zod$/;
const OPENAPI = /^@asteasolutions\/zod-to-openapi$/;
const HONO = /^hono(\/|$)/;
const IP = /^ipaddr\.js$/;
const AWS = /^aws4fetch$/;
const HEAP = /^tinyqueue$/;
const MCP = /^@modelcontextprotocol\/server$/;
const PLATFORM = /^cloudflare:/;
const EVENT_SOURCE = /^eventsource-parser(\/|$)/;
const PREACT = /^(preact|@preact\/signals)(\/|$)/;

const RULES: Readonly<Record<string, Allowed>> = {
  words: { parts: [], packages: [] },
  // Collections whose entries come and go.
  renewed: { parts: [], packages: [] },
  // The queue is a heap.
  // It counts what it adds to requests.
  core: { parts: ["answers", "renewed", "tokens"], packages: [HEAP] },
  // What people search for.
  search: { parts: [], packages: [] },
  // Clients' regular expressions, matched in linear time.
  pattern: { parts: [], packages: [] },
  // Kept answers of a run or on a cassette: equal requests, which answer a call gets. It knows no run.
  recordings: { parts: ["schema"], packages: [] },
  // Rules over answers: votes, merges, early stops. It knows no slot.
  // Equal values have one text, as for schemas.
  answers: { parts: ["pattern", "schema"], packages: [] },
  tokens: { parts: [], packages: [] },
  // Stored texts: indexes, ranges, splits. They are cut in slices.
  contexts: { parts: ["tokens", "renewed"], types: ["bytes"], packages: [] },
  // JSON as bytes: it knows no provider and no field.
  json: { parts: [], packages: [] },
  bytes: { parts: ["renewed"], packages: [] },
  // The sizes of images: it knows no provider.
  images: { parts: ["json"], packages: [] },
  sse: { parts: ["bytes"], packages: [] },
  // The providers' formats: bytes in, facts out.
  formats: { parts: ["bytes", "images", "json", "sse", "tokens"], packages: [] },
  // JSON Schema: what of it is checked, and how it reaches a model.
  schema: { parts: ["json", "pattern", "renewed", "tokens"], packages: [] },
  simulated: { parts: ["json"], packages: [] },
  providers: {
    parts: ["recordings", "json", "formats", "schema", "simulated", "renewed"],
    types: ["core"],
    // The signatures of AWS are a library's.
    packages: [ZOD, AWS],
  },
  contract: {
    // Of the Batch API the schemas of its files and uploads.
    parts: ["answers", "batch", "bytes", "recordings", "contexts", "json", "pattern", "formats", "schema", "tokens"],
    // Of the run what a group's rules are asked by.
    types: ["core"],
    packages: [ZOD],
  },
  // One attempt, by the Worker that holds the client and by lanes alike.
  executors: {
    parts: [
      "bytes",
      "providers",
      "formats",
      "json",
      "recordings",
      "schema",
      "simulated",
      "clients",
      "address",
      "contexts",
      "core",
      "renewed",
      // Of the Batch API what splits its files into lines.
      "batch",
      "tools",
    ],
    types: ["methods"],
    packages: [/^cloudflare:sockets$/],
  },
  batch: { parts: ["bytes", "core", "json", "formats"], packages: [ZOD] },
  // Of the protocols what cuts a text for people.
  replies: {
    parts: ["answers", "bytes", "core", "log", "formats", "schema"],
    types: ["contract", "methods"],
    packages: [],
  },
  // Of the upstream module what reads headers with secrets.
  log: { parts: ["core", "picture", "providers"], packages: [] },
  // What the log says of a run, for whoever shows it.
  picture: { parts: ["renewed"], types: ["core"], packages: [] },
  // Rendered in slices.
  docs: { parts: [], types: ["bytes"], packages: [HONO, ZOD] },
  files: { parts: ["bytes"], packages: [] },
  // Of the upstream module what reads a bounded body and what cleans a message.
  tools: { parts: ["contract", "json", "providers", "schema"], types: ["core"], packages: [IP] },
  env: { parts: ["providers", "tools", "log", "core"], packages: [ZOD] },
  context: { parts: [], types: ["address", "bytes", "contract", "env"], packages: [] },
  auth: { parts: ["env", "renewed"], types: ["context", "contract"], packages: [HONO] },
  openapi: { parts: ["bytes", "contract"], packages: [ZOD, OPENAPI] },
  http: {
    // A route executes single calls, so it may use the upstream module; of the core it uses money and pages.
    parts: [
      "answers",
      "bytes",
      "contexts",
      "contract",
      "batch",
      "files",
      "tools",
      "replies",
      "auth",
      "log",
      "env",
      "context",
      "openapi",
      "address",
      "executors",
      "clients",
      "docs",
      "core",
      "json",
      "schema",
      "recordings",
      "providers",
      "formats",
      "renewed",
      "search",
    ],
    types: ["methods"],
    packages: [HONO, ZOD, MCP],
  },
  // The contract between Workers and objects: interfaces and plain data, no code.
  methods: {
    parts: [],
    types: ["answers", "recordings", "contexts", "core", "contract", "batch", "log", "schema", "tools", "providers"],
    packages: [],
  },
  // Calls to run objects, from Workers and from other objects.
  // A socket that is being opened keeps its request alive: that is the platform's.
  clients: {
    parts: ["address", "answers", "bytes", "core", "log", "recordings", "renewed"],
    types: ["methods"],
    packages: [PLATFORM],
  },
  app: { parts: ["http", "contract", "auth", "env"], types: ["context"], packages: [HONO] },
  // Ways in that are no HTTP: what each does is a route's.
  entrypoints: { parts: ["app", "auth", "contract", "env"], types: ["context"], packages: [PLATFORM] },
  index: { parts: ["entrypoints", "objects"], packages: [] },
  address: { parts: [], types: ["methods"], packages: [] },
  "alarm-time": { parts: [], packages: [] },
  // It signs as the webhook of batches does.
  "webhook-post": { parts: ["batch"], packages: [] },
  objects: {
    parts: [
      "answers",
      "alarm-time",
      "webhook-post",
      "bytes",
      "core",
      "executors",
      "recordings",
      "providers",
      "formats",
      "contract",
      "batch",
      "files",
      "tools",
      "log",
      "env",
      "address",
      "clients",
      "renewed",
      "search",
    ],
    types: ["contexts", "methods"],
    packages: [ZOD, PLATFORM],
  },
  // Programs around the gateway, which know it by its wire: of its code they use what reads the log, and plain parts.
  command: { parts: ["json", "page", "picture", "recordings", "renewed"], packages: [/^node:/, ZOD, EVENT_SOURCE] },
  page: { parts: ["picture"], packages: [PREACT] },
};

/**
 * Single files of the core that the edges use. The contract checks ids of tasks by the syntax of references. The upstream
 * module looks up prices that the configuration does not name, and how a model's images count. The page draws graphs
 * and measures.
 */
const EXCEPTIONS: readonly { from: string; target: RegExp }[] = [
  { from: "contract", target: /^src\/run\/graph\/refs\.ts$/ },
  {
    from: "providers",
    target: /^src\/run\/money\/(prices|estimate|image-tokens|money|decimal|token-price|service-tiers)\.ts$/,
  },
  { from: "picture", target: /^src\/run\/money\/money\.ts$/ },
  {
    from: "page",
    target: /^src\/run\/(graph\/(critical-path|measured-path|order|types)|measures\/percentiles|money\/money)\.ts$/,
  },
  { from: "formats", target: /^src\/run\/money\/(decimal|service-tiers)\.ts$/ },
];

/** An import statement: what it names, and whether it takes types only. */
export type Import = { target: string; isTypeOnly: boolean };

const STATEMENT = /^(?:import|export)\s+(type\s)?([^;"']*?)\s*from\s+["']([^"']+)["']/gm;
const SIDE_EFFECT = /^import\s+["']([^"']+)["']/gm;
const DYNAMIC = /\b(typeof\s+)?import\(\s*["']([^"']+)["']\s*\)/g;

/** Every import and re-export in a module's source. */
export function importsOf(source: string): Import[] {
  const code = source.replace(/^\s*\/\*[\s\S]*?\*\//gm, "").replace(/^\s*\/\/.*$/gm, "");
  return [
    ...[...code.matchAll(STATEMENT)].map(([, type, names = "", target = ""]) => ({
      target,
      isTypeOnly: type !== undefined || takesOnlyTypes(names),
    })),
    ...[...code.matchAll(SIDE_EFFECT)].map(([, target = ""]) => ({ target, isTypeOnly: false })),
    ...[...code.matchAll(DYNAMIC)].map(([, type, target = ""]) => ({ target, isTypeOnly: type !== undefined })),
  ];
}

/** What is wrong with the imports of one module, as sentences; empty when it keeps the rule. */
export function violations(path: string, source: string): string[] {
  const part = partOf(path);
  const allowed = part === null ? undefined : RULES[part];
  if (part === null || !allowed) return [`${path}: no dependency rule speaks of this file; add it to a part`];
  return importsOf(source)
    .filter((imported) => !isAllowed(path, part, allowed, imported))
    .map(({ target, isTypeOnly }) => `${path}: ${part} may not import ${isTypeOnly ? "types of " : ""}${target}`);
}

/** What the table lists and no file needs, as sentences: parts without a file, and permissions that no import uses. */
export function unusedRules(files: readonly { path: string; source: string }[]): string[] {
  const used = new Map(Object.keys(RULES).map((part) => [part, new Set<string>()]));
  const partsWithFiles = new Set<string>();
  for (const { path, source } of files) {
    const part = partOf(path);
    if (part === null) continue;
    partsWithFiles.add(part);
    for (const { target } of importsOf(source)) {
      const imported = target.startsWith(".") ? partOf(posix.join(posix.dirname(path), target)) : target;
      if (imported !== null) used.get(part)?.add(imported);
    }
  }
  const empty = PARTS.map(([part]) => part).filter((part) => !partsWithFiles.has(part));
  const unused = Object.entries(RULES).flatMap(([part, { parts, types = [], packages }]) => {
    const names = [...(used.get(part) ?? [])];
    const unusedParts = [...parts, ...types].filter((name) => !names.includes(name));
    const unusedPackages = packages.filter((pattern) => !names.some((name) => !(name in RULES) && pattern.test(name)));
    return [...unusedParts, ...unusedPackages].map((name) => `${part} may import ${name}, but does not`);
  });
  return [...empty.map((part) => `no file is in the part ${part}`), ...unused].map(
    (rule) => `dependency rule: ${rule}`,
  );
}

function isAllowed(path: string, part: string, allowed: Allowed, { target, isTypeOnly }: Import): boolean {
  if (!target.startsWith(".")) return allowed.packages.some((pattern) => pattern.test(target));
  const file = posix.join(posix.dirname(path), target);
  const targetPart = partOf(file);
  if (targetPart === null) return false;
  if (targetPart === part || targetPart === "words" || allowed.parts.includes(targetPart)) return true;
  if (EXCEPTIONS.some((exception) => exception.from === part && exception.target.test(file))) return true;
  return isTypeOnly && (allowed.types ?? []).includes(targetPart);
}

function partOf(path: string): string | null {
  return PARTS.find(([, pattern]) => pattern.test(path))?.[0] ?? null;
}

function takesOnlyTypes(names: string): boolean {
  const list = /^\{([\s\S]*)\}$/
    .exec(names)?.[1]
    ?.split(",")
    .filter((name) => name.trim() !== "");
  return list !== undefined && list.length > 0 && list.every((name) => name.trim().startsWith("type "));
}
