/**
 * examples/code-mode as `wrangler dev` serves it: its Worker and the gateway in one workerd, with the bindings of its wrangler.toml,
 * and behind them a provider that keeps its own bill.
 */
import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { convertV4MiniflareOptions, Log, LogLevel, Miniflare } from "miniflare";
import { parse } from "smol-toml";
import { z } from "zod";
import { localPlan, type LocalPlan } from "../../scripts/local/plan.ts";
import { ROOT } from "../../scripts/root.ts";
import { runDocument, type RunDocument } from "../../src/contract/runs.ts";
import { completion } from "../support/completion.ts";
import { bundled } from "../support/gateway.ts";
import { startUpstream, type TestUpstream } from "../support/upstream.ts";

const FOLDER = join(ROOT, "examples", "code-mode");
/** Only the provider may receive it. */
export const PROVIDER_KEY = "sk-provider-of-code-mode";
/** USD per million tokens, as the gateway is told and as the provider bills. */
const PRICE = { input: 1, output: 2 };

const workerToml = z.object({
  name: z.string(),
  main: z.string(),
  compatibility_date: z.string(),
  worker_loaders: z.array(z.object({ binding: z.string() })),
  services: z.array(z.object({ binding: z.string(), service: z.string(), entrypoint: z.string() })),
  vars: z.record(z.string(), z.json()),
});

const answer = z.object({
  run: z.string(),
  result: z.json().optional(),
  error: z.string().optional(),
  spent_usd: z.number().nullable(),
});
export type Answer = z.infer<typeof answer> & { text: string };

export type CodeMode = {
  url: string;
  /** Sends a task, as a user does. */
  task(text: string): Promise<Answer>;
  /** Runs a program: the simulated model answers with what the task quotes. */
  program(code: string): Promise<Answer>;
  /** The same program in a Worker that has a text among its bindings. */
  programWith(code: string, secret: string): Promise<string>;
  runOf(id: string): Promise<RunDocument>;
  /** What the provider has billed since it started, USD, and for how many requests. */
  bill(): { usd: number; requests: number };
  adminKey: string;
  /** What both Workers have written to their console. */
  log(): string;
  stop(): Promise<void>;
};

/** A Worker that gives its program a secret, so that a test knows that programs find what is there to be found. */
const LEAKY = `export default {
  async fetch(request, env) {
    const { modules, secret } = await request.json();
    const worker = env.LOADER.load({
      compatibilityDate: "2026-11-01", mainModule: "entry.js", modules, env: { llm: env.FANOUT, secret }, globalOutbound: null,
    });
    return new Response(await worker.getEntrypoint().run());
  },
};`;

const ENTRY = `import { WorkerEntrypoint } from "cloudflare:workers";
import { main } from "./program.js";
export default class extends WorkerEntrypoint {
  async run() { return JSON.stringify(await main(this.env.llm)); }
}`;

/** `programMs`: how long a program may take. */
export async function startCodeMode({ programMs }: { programMs: number }): Promise<CodeMode> {
  const { upstream, bill } = await billingProvider();
  const plan = localPlan({});
  const adminKey = randomUUID();
  const lines: string[] = [];
  const miniflare = new Miniflare(
    convertV4MiniflareOptions({
      host: "127.0.0.1",
      cf: false,
      telemetry: { enabled: false },
      log: new Log(LogLevel.NONE),
      logRequests: false,
      handleStructuredLogs: ({ message }: { message: string }) => lines.push(message),
      workers: [
        await exampleWorker(programMs),
        await gatewayWorker(plan, { ADMIN_KEY: adminKey, UPSTREAMS: { up: providerAt(upstream.baseUrl) } }),
        leakyWorker(plan),
      ],
    }),
  );
  const url = (await miniflare.ready).href;
  const [gateway, leaky] = [await miniflare.getWorker(plan.name), await miniflare.getWorker("leaky")];
  const task = async (text: string): Promise<Answer> => {
    const body = await (await fetch(url, { method: "POST", body: text })).text();
    return { ...answer.parse(JSON.parse(body)), text: body };
  };
  return {
    url,
    task,
    program: (code) => task(`Run this.\n\n\`\`\`js\n${code}\n\`\`\`\n`),
    programWith: async (code, secret) => {
      const body = JSON.stringify({ modules: { "entry.js": ENTRY, "program.js": code }, secret });
      return await (await leaky.fetch("http://leaky.test/", { method: "POST", body })).text();
    },
    runOf: async (id) => {
      const headers = { authorization: `Bearer ${adminKey}` };
      return runDocument().parse(await (await gateway.fetch(`http://fanout.test/runs/${id}`, { headers })).json());
    },
    bill,
    adminKey,
    log: () => lines.join("\n"),
    stop: async () => {
      await miniflare.dispose();
      await upstream.stop();
    },
  };
}

/** A provider that echoes, and bills each request by the usage that it states. */
async function billingProvider(): Promise<{ upstream: TestUpstream; bill: CodeMode["bill"] }> {
  const billed = { usd: 0, requests: 0 };
  const upstream = await startUpstream(
    (call) => {
      const { usage } = completion(call);
      if (usage === undefined) throw new Error("the provider bills by usage");
      billed.usd += (usage.prompt_tokens * PRICE.input + usage.completion_tokens * PRICE.output) / 1e6;
      billed.requests += 1;
      return {};
    },
    { recordsPrompts: false },
  );
  return { upstream, bill: () => ({ ...billed }) };
}

function providerAt(baseUrl: string) {
  return { kind: "openai", base_url: baseUrl, api_key: "secret:PROVIDER_KEY", models: ["*"], prices: { "*": PRICE } };
}

/** The example, with the bindings of its wrangler.toml. */
async function exampleWorker(programMs: number) {
  const toml = workerToml.parse(parse(await readFile(join(FOLDER, "wrangler.toml"), "utf8")));
  const contents = await readFile(join(FOLDER, toml.main), "utf8");
  return {
    name: toml.name,
    modules: [{ type: "ESModule" as const, path: toml.main, contents }],
    compatibilityDate: toml.compatibility_date,
    workerLoaders: Object.fromEntries(toml.worker_loaders.map(({ binding }) => [binding, {}])),
    serviceBindings: Object.fromEntries(
      toml.services.map(({ binding, service, entrypoint }) => [binding, { name: service, entrypoint }]),
    ),
    bindings: { ...toml.vars, PROGRAM_MS: programMs },
  };
}

/** The gateway, with what wrangler.toml binds. */
async function gatewayWorker(plan: LocalPlan, vars: LocalPlan["vars"]) {
  return {
    name: plan.name,
    modules: [{ type: "ESModule" as const, path: "gateway.mjs", contents: await bundled() }],
    compatibilityDate: plan.compatibilityDate,
    compatibilityFlags: [...plan.compatibilityFlags],
    durableObjects: Object.fromEntries(
      Object.entries(plan.objects).map(([binding, className]) => [binding, { className, useSQLite: true }]),
    ),
    r2Buckets: plan.buckets,
    bindings: { ...plan.vars, SERVICE_BINDINGS: "1", DEFAULT_MODEL: "up/echo", PROVIDER_KEY, ...vars },
  };
}

function leakyWorker(plan: LocalPlan) {
  return {
    name: "leaky",
    modules: [{ type: "ESModule" as const, path: "leaky.mjs", contents: LEAKY }],
    compatibilityDate: plan.compatibilityDate,
    workerLoaders: { LOADER: {} },
    serviceBindings: { FANOUT: { name: plan.name, entrypoint: "FanoutRun" } },
  };
}
