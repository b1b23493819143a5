/**
 * The gateway as a stranger meets it: bundled from src/index.ts and served by plain workerd, seen over HTTP only.
 * Plain workerd, because a development proxy hides clients that leave, and costs time. Imports no test framework, so
 * that benchmarks use it too.
 */
import { randomUUID } from "node:crypto";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { capnpConfig } from "./capnp-config.ts";
import { bundleWorker } from "../../scripts/local/bundle.ts";
import { BUNDLE_FILE, ENTRY_POINT } from "./shared-bundle.ts";
import { serveWorkerd } from "./workerd.ts";

/** A bundled gateway of a commit. */
export type Version = { script: string; wranglerToml: string };

export type GatewayOptions = {
  /** Vars and secrets, laid over the defaults: a fresh `ADMIN_KEY` and the simulated upstream as `sim`. */
  vars?: Record<string, unknown>;
  /** Where objects store; a second gateway on it is a restart. Default: a directory that ends with the gateway. */
  dataDir?: string;
  /** Default: a free one. */
  port?: number;
  /** Another Worker to serve, with the same object classes; from the repository's root. Default: the gateway's. */
  entryPoint?: string;
  /** A bundle and the wrangler.toml that belongs to it, instead of an entry point: of another version. */
  script?: Version;
  /** The version of the objects, where it is another than that of the Worker. */
  objects?: Version;
  /** Host and port of a server behind the binding of Workers AI. Default: the gateway has no such binding. */
  ai?: string;
  /** Further arguments of `workerd serve`, such as `--inspector-addr=127.0.0.1:0`. */
  workerdArgs?: readonly string[];
};

/** A request: `json` becomes the body, `token` (a run token, or the admin key) the credential. */
export type GatewayRequest = RequestInit & { json?: unknown; token?: string };

const openedRun = z.looseObject({ id: z.string(), token: z.string() });
export type OpenedRun = z.infer<typeof openedRun>;

export type Gateway = {
  url: string;
  adminKey: string;
  pid: number;
  dataDir: string;
  /** Null unless `workerdArgs` ask for it. */
  inspectorUrl: string | null;
  /** The end of what workerd wrote to stderr so far. */
  output(): string;
  stop(): Promise<void>;
  /** SIGKILL, as in a crash. A `dataDir` that was given stays. */
  kill(): Promise<void>;
  /** `POST /runs` as the operator; throws unless it is answered 201. */
  openRun(body?: Record<string, unknown>): Promise<OpenedRun>;
  fetch(path: string, request?: GatewayRequest): Promise<Response>;
};

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** Starts a gateway and waits until it listens. */
export async function startGateway(options: GatewayOptions = {}): Promise<Gateway> {
  const version = options.script ?? (await presentVersion(options.entryPoint));
  const scratchDir = await mkdtemp(join(tmpdir(), "fanout-"));
  const dataDir = options.dataDir ?? join(scratchDir, "data");
  await mkdir(dataDir, { recursive: true });
  const vars = { ADMIN_KEY: randomUUID(), ...DEFAULT_VARS, ...options.vars };
  const configFile = join(scratchDir, "config.capnp");
  await writeFile(join(scratchDir, "gateway.mjs"), version.script);
  if (options.objects !== undefined) await writeFile(join(scratchDir, "objects.mjs"), options.objects.script);
  const { wranglerToml } = version;
  const objectsToml = options.objects?.wranglerToml ?? null;
  await writeFile(
    configFile,
    capnpConfig({ wranglerToml, vars, dataDir, port: options.port ?? 0, objectsToml, ai: options.ai ?? null }),
  );
  const removeScratch = () => rm(scratchDir, { recursive: true, force: true });
  const workerd = await serveWorkerd(configFile, options.workerdArgs).catch(async (error: unknown) => {
    await removeScratch();
    throw error;
  });
  const adminKey = String(vars.ADMIN_KEY);
  return {
    url: workerd.url,
    adminKey,
    pid: workerd.pid,
    dataDir,
    inspectorUrl: workerd.inspectorUrl,
    output: workerd.output,
    stop: () => workerd.stop().then(removeScratch),
    kill: () => workerd.kill().then(removeScratch),
    openRun: (body = {}) => openRun(workerd.url, adminKey, body),
    fetch: (path, request) => send(workerd.url + path, request),
  };
}

/** The gateway of this checkout. */
export async function presentVersion(entryPoint?: string): Promise<Version> {
  const script = await bundled(entryPoint);
  return { script, wranglerToml: await readFile(join(ROOT, "wrangler.toml"), "utf8") };
}

/** Plain workerd lets any number of fetches wait for their headers, as under `npm start`. */
const DEFAULT_VARS = {
  DEFAULT_MODEL: "sim/echo",
  UPSTREAMS: { sim: { kind: "simulated" } },
  WAITING_FETCHES_MAX: "512",
};

/** `POST /runs` as the operator; throws unless it is answered 201. */
export async function openRun(url: string, adminKey: string, body: Record<string, unknown>): Promise<OpenedRun> {
  const answer = await send(`${url}/runs`, { method: "POST", token: adminKey, json: body });
  const text = await answer.text();
  if (answer.status !== 201) throw new Error(`POST /runs answered ${answer.status}: ${text}`);
  return openedRun.parse(JSON.parse(text));
}

/** Sends a request as `GatewayRequest` describes it. */
export function send(url: string, { json, token, ...init }: GatewayRequest = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  if (token !== undefined) headers.set("authorization", `Bearer ${token}`);
  if (json === undefined) return fetch(url, { ...init, headers });
  headers.set("content-type", "application/json");
  return fetch(url, { method: "POST", ...init, headers, body: JSON.stringify(json) });
}

const bundles = new Map<string, Promise<string>>();

/** The Worker at `entryPoint` as one module. Bundled at most once per process: all gateways of a process are of the same source. */
export function bundled(entryPoint = ENTRY_POINT): Promise<string> {
  const known = bundles.get(entryPoint);
  if (known) return known;
  const file = process.env[BUNDLE_FILE];
  const isThere = file !== undefined && entryPoint === ENTRY_POINT;
  const bundle = isThere ? readFile(file, "utf8") : bundleWorker(entryPoint, { root: ROOT }).then(({ code }) => code);
  bundles.set(entryPoint, bundle);
  return bundle;
}
