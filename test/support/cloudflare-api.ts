/**
 * A stand-in of Cloudflare's API, for deployments without an account: the routes that wrangler and `npm run deploy` use, with the
 * documented answers, errors and codes. It keeps what a deployment changes, and records every request that changes something.
 * wrangler talks to it through CLOUDFLARE_API_BASE_URL.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { z } from "zod";

/** A binding as the API takes and shows it. A secret's text is taken and never shown. */
const binding = z.looseObject({ name: z.string(), type: z.string(), text: z.string().optional() });
export type Binding = z.infer<typeof binding>;

const uploadMetadata = z.looseObject({
  bindings: z.array(binding),
  keep_bindings: z.array(z.string()).default([]),
  limits: z.looseObject({}).optional(),
  code_update_strategy: z.looseObject({ mode: z.string() }).optional(),
  observability: z.unknown().optional(),
});
export type UploadMetadata = z.infer<typeof uploadMetadata>;

export type Account = {
  id: string;
  name: string;
  /** The name below workers.dev; null = not registered. */
  subdomain: string | null;
  plan: "free" | "paid";
  /** The names of the buckets, behind that of their jurisdiction if they have one (`eu/files`); null = R2 is not enabled. */
  buckets: Set<string> | null;
  /** The bindings of each Worker, by its name. */
  workers: Map<string, Binding[]>;
};

export type CloudflareApi = {
  url: string;
  accounts: Account[];
  /** What the token may not do: prefixes of paths below the account, such as "/r2". */
  forbidden: string[];
  /** Every request that changes something, in order: method and path below the account. */
  changes: string[];
  /** What was uploaded as Workers, in order. */
  uploads: UploadMetadata[];
  stop(): Promise<void>;
};

/** The only token that it takes. */
export const API_TOKEN = "stand-in-api-token-0123456789abcdefghijkl";

export function account(over: Partial<Account> = {}): Account {
  const id = "0123456789abcdef0123456789abcdef";
  return { id, name: "Somebody", subdomain: "somebody", plan: "paid", buckets: new Set(), workers: new Map(), ...over };
}

/** `body`: instead of the envelope of the API. */
type Answer = { status: number; result: unknown; errors: { code: number; message: string }[]; body?: unknown };
const ok = (result: unknown): Answer => ({ status: 200, result, errors: [] });
const refused = (status: number, code: number, message: string): Answer => ({
  status,
  result: null,
  errors: [{ code, message }],
});
const NO_WORKER = refused(404, 10007, "This Worker does not exist on your account.");

export async function startCloudflareApi(accounts: Account[]): Promise<CloudflareApi> {
  const state = { accounts, forbidden: [], changes: [], uploads: [] };
  const server = createServer((request, reply) => void respond(state, request, reply));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { ...state, url: `http://127.0.0.1:${portOf(server)}/client/v4`, stop: () => stopped(server) };
}

function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the stand-in does not listen");
  return address.port;
}

async function stopped(server: Server): Promise<void> {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
}

type State = Pick<CloudflareApi, "accounts" | "forbidden" | "changes" | "uploads">;

async function respond(state: State, request: IncomingMessage, reply: ServerResponse): Promise<void> {
  const { status, result, errors, body } = await answerTo(state, request);
  reply.writeHead(status, { "content-type": "application/json" });
  reply.end(JSON.stringify(body ?? { success: status < 400, result, errors, messages: [] }));
}

async function answerTo(state: State, request: IncomingMessage): Promise<Answer> {
  const method = request.method ?? "GET";
  if (request.url?.startsWith("/gateway/") === true) return gatewayAnswer(state, request);
  const path = new URL(request.url ?? "/", "http://api").pathname.replace("/client/v4", "");
  if (request.headers.authorization !== `Bearer ${API_TOKEN}`) return refused(403, 10000, "Authentication error");
  const [, id, below = ""] = /^\/accounts\/([^/]+)(\/.*)$/.exec(path) ?? [];
  if (id === undefined) return outsideAccounts(state, path);
  const owner = state.accounts.find((each) => each.id === id);
  if (owner === undefined || state.forbidden.some((prefix) => below.startsWith(prefix))) {
    return refused(403, 10000, "Authentication error");
  }
  if (method !== "GET") state.changes.push(`${method} ${below}`);
  if (below.startsWith("/r2/buckets")) {
    const place = request.headers["cf-r2-jurisdiction"];
    return bucketAnswer(owner, { method, below, within: placeOf(place) }, await text(request));
  }
  return await workerAnswer(state, owner, { method, below, request });
}

/** What a deployed gateway answers to the two requests with which a deployment ends; see workers-dev.mjs. */
function gatewayAnswer({ accounts, uploads }: State, request: IncomingMessage): Answer {
  if (request.url === "/gateway/health") {
    return { ...ok(null), body: { status: "ok", deployment: versionId(uploads.length), warnings: [] } };
  }
  const keys = accounts
    .flatMap(({ workers }) => [...workers.values()].flat())
    .filter(({ name }) => name === "ADMIN_KEY");
  return keys.some(({ text: key }) => request.headers.authorization === `Bearer ${key}`)
    ? ok([])
    : refused(401, 0, "not authenticated");
}

const versionId = (upload: number): string => `5a6b7c8d-0000-4000-8000-${String(upload).padStart(12, "0")}`;

function outsideAccounts({ accounts }: State, path: string): Answer {
  const shown = accounts.map(({ id, name }) => ({ id, name }));
  if (path === "/accounts") return ok(shown);
  if (path === "/memberships") return ok(shown.map((each) => ({ id: each.id, account: each, roles: [] })));
  if (path === "/user") return ok({ id: "user", email: "somebody@example.com" });
  if (path === "/user/tokens/verify") return ok({ id: "token", status: "active" });
  return refused(404, 7003, `Could not route to ${path}`);
}

/** A bucket is found, and made, only in the jurisdiction that the request names. */
const placeOf = (jurisdiction: unknown): string =>
  typeof jurisdiction === "string" && jurisdiction !== "default" ? `${jurisdiction}/` : "";

type BucketRequest = { method: string; below: string; within: string };

function bucketAnswer({ buckets }: Account, { method, below, within }: BucketRequest, body: string): Answer {
  if (buckets === null) return refused(403, 10042, "Please enable R2 through the Cloudflare Dashboard.");
  const [, , , name] = below.split("/");
  if (method === "POST") {
    const made = z.object({ name: z.string() }).parse(JSON.parse(body)).name;
    buckets.add(within + made);
    return ok({ name: made });
  }
  if (name === undefined) return ok({ buckets: [...buckets].map((each) => ({ name: each })) });
  if (!buckets.has(within + name)) return refused(404, 10006, "The specified bucket does not exist.");
  if (method === "DELETE") buckets.delete(within + name);
  return ok({ name });
}

type WorkerRequest = { method: string; below: string; request: IncomingMessage };

async function workerAnswer(state: State, owner: Account, { method, below, request }: WorkerRequest): Promise<Answer> {
  if (below === "/workers/subdomain") {
    return owner.subdomain === null
      ? refused(404, 10007, "There is no workers.dev subdomain on this account.")
      : ok({ subdomain: owner.subdomain });
  }
  const [, name = "", part = ""] = /^\/workers\/(?:scripts|services|workers)\/([^/]+)(\/.*)?$/.exec(below) ?? [];
  if (method === "PUT" && below === `/workers/scripts/${name}`) return await uploadAnswer(state, owner, name, request);
  const bindings = owner.workers.get(name);
  if (bindings === undefined) return NO_WORKER;
  const shown = bindings.map(({ text: hidden, ...rest }) => (isSecret(rest) ? rest : { ...rest, text: hidden }));
  switch (part) {
    case "":
      return below.startsWith("/workers/services")
        ? ok({ id: name, default_environment: { environment: "production", script: { id: name, tag: "t", tags: [] } } })
        : ok({ id: name, name, tags: [], subdomain: { enabled: true, previews_enabled: false } });
    case "/settings":
    case "/script-settings":
      return ok({ bindings: shown, tags: [] });
    case "/secrets":
      return ok(shown.filter(isSecret).map(({ name: secret, type }) => ({ name: secret, type })));
    case "/deployments":
      return ok({ deployments: [{ id: "d", source: "wrangler", strategy: "percentage", versions: [] }] });
    case "/subdomain":
      return ok({ enabled: true, previews_enabled: false });
    default:
      return refused(404, 7003, `Could not route to ${below}`);
  }
}

const isSecret = ({ type }: { type: string }): boolean => type === "secret_text";

/** Replaces a Worker. Its bindings of the kept types stay, if the upload has none of their name; all others are gone. */
async function uploadAnswer(state: State, owner: Account, name: string, request: IncomingMessage): Promise<Answer> {
  const type = request.headers["content-type"] ?? "";
  const form = await new Response(await bytesOf(request), { headers: { "content-type": type } }).formData();
  const metadata = uploadMetadata.parse(JSON.parse(String(form.get("metadata"))));
  if (owner.plan === "free" && metadata.limits !== undefined) {
    return refused(400, 100328, "CPU limits are not supported for the Free plan.");
  }
  const missing = metadata.bindings.find(
    (each) =>
      each.type === "r2_bucket" &&
      owner.buckets?.has(placeOf(each["jurisdiction"]) + String(each["bucket_name"])) !== true,
  );
  if (missing !== undefined) return refused(400, 10085, `R2 bucket '${String(missing["bucket_name"])}' not found.`);
  const named = new Set(metadata.bindings.map((each) => each.name));
  const before = owner.workers.get(name) ?? [];
  const kept = before.filter((each) => metadata.keep_bindings.includes(each.type) && !named.has(each.name));
  owner.workers.set(name, [...metadata.bindings, ...kept]);
  state.uploads.push(metadata);
  const id = versionId(state.uploads.length).replaceAll("-", "");
  return ok({ id: name, etag: "e", deployment_id: id, startup_time_ms: 20, has_modules: true });
}

async function bytesOf(request: IncomingMessage): Promise<Uint8Array<ArrayBuffer>> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(Buffer.from(piece));
  return new Uint8Array(Buffer.concat(pieces));
}
