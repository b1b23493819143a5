/**
 * Where hostile requests are sent: a gateway on plain workerd and one with R2, a provider, tools that redirect and a webhook
 * that does; and what nobody may reach: a run whose token no request has, and an address that only redirects name.
 */
import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { BATCH_USD, BatchProvider } from "../support/batch-provider.ts";
import { startGateway, type Gateway } from "../support/gateway.ts";
import { startR2Gateway } from "../support/r2-gateway.ts";
import { makeThings } from "../support/things.ts";
import { startUpstream } from "../support/upstream.ts";
import type { Names, Party } from "./names.ts";
import type { Secret } from "./oracle.ts";

/** A gateway with what requests to it can name. */
export type Site = {
  gateway: Gateway;
  /** Replaced by `renew`. */
  names: Names;
  /** What no answer to a request of `names.own` may have. */
  secrets: readonly Secret[];
  hasFiles: boolean;
  /** The tools of the run that sends, as they are registered. */
  tools: readonly unknown[];
  /** What the other run is, as it reads itself: hostile requests change none of it. */
  otherBefore: string;
};

export type Place = {
  plain: Site;
  withFiles: Site;
  /** Requests that the address got which only redirects name. */
  reached: () => number;
  stop: () => Promise<void>;
};

/** Only the provider may receive it. */
const PROVIDER_KEY = "sk-provider-91d3c7b04e5f4d0a";
const WEBHOOK_SECRET = `whsec_${Buffer.from("the operator's own secret").toString("base64")}`;
const ratesOf = (usd: number) => ({ input: usd, output: usd });
const PRICES = { "*": { input: 1, output: 2 } };
/** What a run may spend between two renewals: some of its requests are refused for it. */
const BUDGET = {
  usd: 0.02,
  calls: 2_000,
  prompt_tokens: 4_000_000,
  completion_tokens: 4_000_000,
  new_tokens: 8_000_000,
};

export async function startPlace(): Promise<Place> {
  const upstream = await startUpstream(undefined, { recordsPrompts: false });
  const trap = await startTrap();
  const batches = await new BatchProvider().start();
  const provider = { kind: "openai", api_key: "secret:PROVIDER_KEY", prices: PRICES, max_attempts: 2 };
  const UPSTREAMS = {
    sim: { kind: "simulated", prices: PRICES },
    up: { ...provider, base_url: upstream.baseUrl },
    // A key that is refused makes the calls of all runs wait.
    flaky: { ...provider, base_url: upstream.baseUrl },
    // Its calls fail, and its key works: hostile requests do not know it.
    shaky: { ...provider, base_url: upstream.baseUrl },
    batched: {
      ...provider,
      base_url: batches.baseUrl,
      prices: { "*": { ...ratesOf(BATCH_USD.live), batch: ratesOf(BATCH_USD.batch) } },
      batch: { poll_ms: 100 },
    },
    taped: { kind: "cassette", mode: "record", tape: "tape", upstream: { kind: "simulated", prices: PRICES } },
  };
  const PANEL = { panel: ["sim/echo", "sim/reverse"], judge: "sim/echo" };
  const vars = { UPSTREAMS, PROVIDER_KEY, PANEL };
  const [plain, withFiles] = await Promise.all([
    startGateway({ vars }),
    startR2Gateway({
      vars: { ...vars, TOOL_HOSTS: trap.host, WEBHOOK_URL: `http://${trap.host}/hook`, WEBHOOK_SECRET },
    }),
  ]);
  return {
    plain: await siteOf(plain, null),
    withFiles: await siteOf(withFiles, `http://${trap.host}`),
    reached: trap.reached,
    stop: async () => {
      await Promise.all([plain.kill(), withFiles.kill()]);
      await Promise.all([upstream.stop(), trap.stop(), batches.stop()]);
    },
  };
}

/** A server with one tool that answers, which redirects everything else to an address that nobody may follow to: that of a machine's metadata would be one. */
async function startTrap(): Promise<{ host: string; reached: () => number; stop: () => Promise<void> }> {
  let reached = 0;
  const server = createServer((request, response) => {
    if (request.url === "/inner") reached += 1;
    request.resume();
    if (request.url === "/echo") return void response.writeHead(200, { "content-type": "text/plain" }).end("echo");
    response.writeHead(307, { location: `http://${request.headers.host}/inner` }).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the trap has no TCP address");
  const stop = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return { host: `127.0.0.1:${address.port}`, reached: () => reached, stop };
}

/** `toolsUrl`: where the tools are, of the gateway with R2; null = there are none. */
async function siteOf(gateway: Gateway, toolsUrl: string | null): Promise<Site> {
  const hasFiles = toolsUrl !== null;
  const tools = hasFiles ? ["redirect", "echo"].map((name) => ({ name, url: `${toolsUrl}/${name}` })) : [];
  return { gateway, hasFiles, tools, ...(await partiesOf(gateway, tools, hasFiles)) };
}

/** Opens the runs of a site anew, as hostile requests may have ended theirs. */
export async function renew(site: Site): Promise<void> {
  const { gateway, names, tools, hasFiles } = site;
  for (const { id } of [names.own, names.other]) {
    await gateway.fetch(`/runs/${id}`, { method: "DELETE", token: gateway.adminKey });
  }
  Object.assign(site, await partiesOf(gateway, tools, hasFiles));
}

async function partiesOf(
  gateway: Gateway,
  tools: readonly unknown[],
  hasFiles: boolean,
): Promise<Pick<Site, "names" | "secrets" | "otherBefore">> {
  const words = `words-of-another-run-${randomUUID()}`;
  const own = await openParty(gateway, { words: "own", tools, hasFiles });
  const other = await openParty(gateway, { words, tools: [], hasFiles });
  const answer = await gateway.fetch(`/runs/${own.id}/worker-token`, { method: "POST", token: own.token });
  const { token: workerToken } = z.looseObject({ token: z.string() }).parse(await answer.json());
  const secrets = [
    { what: "the provider's key", text: PROVIDER_KEY },
    { what: "the operator's key", text: gateway.adminKey },
    { what: "the webhook's secret", text: WEBHOOK_SECRET },
    { what: "a text of another run", text: words },
    { what: "the token of another run", text: other.token },
    { what: "the token that the request has", text: own.token },
  ];
  return {
    names: { own, other, workerToken, adminKey: gateway.adminKey },
    secrets,
    otherBefore: await lookAt(gateway, other),
  };
}

async function openParty(
  gateway: Gateway,
  { words, tools, hasFiles }: { words: string; tools: readonly unknown[]; hasFiles: boolean },
): Promise<Party> {
  const { id, token } = await gateway.openRun({
    ...{ name: words, metadata: { words }, budget: BUDGET, default_model: "sim/echo", max_depth: 3, tools },
  });
  await gateway.fetch("/log", { json: { event_type: "code_generated", code: words }, token });
  const things = await makeThings(gateway, token, { words, hasFiles });
  if (things.files !== null) {
    await endOfBatch(gateway, token, `/v1/batches/${things.files.batch}`);
    await endOfBatch(gateway, token, `/v1/messages/batches/${things.files.messageBatch}`);
  }
  return { id, token, things };
}

const batchForm = z.looseObject({ status: z.string().optional(), processing_status: z.string().optional() });
const POLL_MS = 50;

/** Waits until a batch has ended: nothing of its run changes by itself afterwards. */
async function endOfBatch(gateway: Gateway, token: string, path: string): Promise<void> {
  for (;;) {
    const { status = "", ...of } = batchForm.parse(await (await gateway.fetch(path, { token })).json());
    if (["completed", "failed", "expired", "cancelled"].includes(status) || of.processing_status === "ended") return;
    await sleep(POLL_MS);
  }
}

/** All that a run reads of itself that stays as it is while nobody uses it. */
export async function lookAt(gateway: Gateway, { id, token, things }: Party): Promise<string> {
  const { group, dag, context, files } = things;
  const paths = [
    ...["/run", `/groups/${group}`, `/groups/${group}/results`, `/dag/${dag}`, `/contexts/${context}`, "/contexts"],
    ...[`/runs/${id}/log`, `/runs/${id}/children`],
    ...(files === null ? [] : ["/v1/files", `/v1/files/${files.file}/content`]),
  ];
  const texts: string[] = [];
  for (const path of paths) {
    const answer = await gateway.fetch(path, { token });
    texts.push(`${path} ${answer.status} ${await answer.text()}`);
  }
  return texts.join("\n");
}

/** Resident memory of the site's workerd, bytes. Miniflare's is the child of a process of Node. */
export async function residentBytes({ gateway: { pid } }: Site): Promise<number> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, "utf8").catch(() => "");
  const pids = [pid, ...children.trim().split(" ").filter(Boolean).map(Number)];
  const sizes = await Promise.all(pids.map(residentBytesOf));
  return Math.max(...sizes);
}

async function residentBytesOf(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
  const isWorkerd = /^Name:\s+workerd/m.test(status);
  return isWorkerd ? Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) * 1_024 : 0;
}
