/** What the tests of /v1 share: a gateway before an upstream that answers exact bytes, and a client that reads them. */
import { Agent, request, type ClientRequest, type IncomingMessage } from "node:http";
import { z } from "zod";
import { startByteUpstream, type ByteUpstream } from "../support/byte-upstream.ts";
import { startGateway, type Gateway } from "../support/gateway.ts";

/** The provider's key: only the provider may receive it. */
export const PROVIDER_KEY = "sk-provider-5f0c9d1e7ab24c60";

/** nano-USD per token: $1 and $2 per million. */
export const PRICE_NANO = { prompt: 1_000, completion: 2_000 };

export type V1World = { gateway: Gateway; upstream: ByteUpstream; stop: () => Promise<void> };

/** `up` speaks OpenAI's protocol, `claude` Anthropic's; `once` is `up` without retries. All cost the same. */
export async function startV1(fields: Record<string, unknown> = {}): Promise<V1World> {
  const upstream = await startByteUpstream();
  const prices = { "*": { input: 1, output: 2 } };
  // It adds nothing to prompts, so all attempts of a call reserve the same.
  const common = { prompt_tokens_per_call: 0, api_key: "secret:PROVIDER_KEY", prices, max_in_flight: 2_000, ...fields };
  const UPSTREAMS = {
    up: { kind: "openai", base_url: `${upstream.origin}/v1`, models: ["up-*"], ...common },
    once: { kind: "openai", base_url: `${upstream.origin}/v1`, models: [], ...common, max_attempts: 1 },
    claude: { kind: "anthropic", base_url: upstream.origin, models: ["claude-*"], ...common },
  };
  const gateway = await startGateway({ vars: { UPSTREAMS, PROVIDER_KEY } });
  return {
    gateway,
    upstream,
    stop: async () => {
      await gateway.stop();
      await upstream.stop();
    },
  };
}

/** A connection for each call: nothing waits for another's, and one that breaks off breaks no other. */
const agent = new Agent({ keepAlive: false, maxSockets: Infinity });

/** An answer as it arrives. `ended` is false when the connection broke off. */
export type Posted = {
  response: Promise<IncomingMessage>;
  body: Promise<{ bytes: Buffer; ended: boolean }>;
  /** Resets the connection: plain workerd notices this, but not one that is merely closed on one side. */
  leave(): void;
};

/** Posts exact bytes. `take` sees the answer's pieces as they come; without it they are gathered. */
export function post(
  gateway: Gateway,
  path: string,
  token: string,
  bytes: Uint8Array | string,
  { headers = {}, take }: { headers?: Record<string, string>; take?: (piece: Buffer) => void } = {},
): Posted {
  const sent = { authorization: `Bearer ${token}`, "content-type": "application/json", ...headers };
  const asked: ClientRequest = request(gateway.url + path, { method: "POST", agent, headers: sent });
  const response = new Promise<IncomingMessage>((resolve, reject) => {
    asked.once("response", resolve);
    asked.once("error", reject);
  });
  const body = response.then(
    (incoming) =>
      new Promise<{ bytes: Buffer; ended: boolean }>((resolve) => {
        const pieces: Buffer[] = [];
        incoming.on("data", take ?? ((piece: Buffer) => pieces.push(piece)));
        incoming.once("error", () => undefined);
        incoming.once("close", () => resolve({ bytes: Buffer.concat(pieces), ended: incoming.complete }));
      }),
    () => ({ bytes: Buffer.alloc(0), ended: false }),
  );
  response.catch(() => undefined);
  asked.end(bytes);
  return { response, body, leave: () => void asked.socket?.resetAndDestroy() };
}

const line = z.object({ limit: z.number().nullable(), spent: z.number(), reserved: z.number() });
const budget = z.object({ usd: line, calls: line, prompt_tokens: line, completion_tokens: line, new_tokens: line });
export type Budget = z.infer<typeof budget>;

export async function budgetOf(gateway: Gateway, token: string): Promise<Budget> {
  return budget.parse(await (await gateway.fetch("/budget", { token })).json());
}

const logLine = z.looseObject({ event_type: z.string() });

/** All lines of a run's log so far. */
export async function logOf(gateway: Gateway, { id, token }: { id: string; token: string }) {
  const text = await (await gateway.fetch(`/runs/${id}/log`, { token })).text();
  const lines = text.split("\n").filter((json) => json !== "");
  return lines.map((json) => logLine.parse(JSON.parse(json)));
}

/** Resident memory of a process, in MiB. */
export function residentMib(status: string): number {
  const kib = /^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1];
  if (kib === undefined) throw new Error("no VmRSS");
  return Number(kib) / 1024;
}
