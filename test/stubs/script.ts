/** What the rules share: the gateway, a provider that counts its requests, tools, one run per test, and the driver. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, onTestFinished } from "vitest";
import { startWorld, type RunAccess, type World } from "../contract/world.ts";
import { reportLeftOut } from "../support/left-out.ts";
import { startFaultyProxy, type Fate, type FaultyProxy } from "../support/faulty-proxy.ts";
import { startToolServer, type ToolServer } from "../support/tool-server.ts";
import { buildDriver, missingOf, startDriver, type RunningDriver, type Language, type Record_ } from "./language.ts";

export class Script {
  readonly #language: Language;
  #fixture: { world: World; tools: ToolServer; folder: string } | null = null;
  #run: RunAccess | null = null;
  #released = Promise.resolve();
  /** Answers the prompts that hold() blocks. */
  release: () => void = () => undefined;

  constructor(language: Language) {
    this.#language = language;
  }

  get world(): World {
    return present(this.#fixture).world;
  }

  get tools(): ToolServer {
    return present(this.#fixture).tools;
  }

  /** The run of this test: the stub has its token. */
  get run(): RunAccess {
    return present(this.#run);
  }

  async start(folder: string): Promise<void> {
    const tools = await startToolServer();
    const waits = ({ prompt }: { prompt: string }) => (prompt.includes("wait for it") ? { after: this.#released } : {});
    const world = await startWorld(waits, { TOOL_HOSTS: tools.host });
    this.#fixture = { world, tools, folder };
  }

  async openRun(): Promise<void> {
    this.world.upstream.forget();
    this.#run = await this.world.openRun({ default_model: "up-1", budget: { usd: 1 }, max_parallel: 32 });
  }

  async stop(): Promise<void> {
    const { world, tools, folder } = present(this.#fixture);
    await Promise.all([world.stop(), tools.stop(), rm(folder, { recursive: true, force: true })]);
  }

  /** From now on, prompts that contain "wait for it" are not answered before release(). */
  hold(): void {
    this.#released = new Promise((resolve) => (this.release = resolve));
  }

  startDriver(args: readonly string[], env: Record<string, string> = {}): RunningDriver {
    const { world, folder } = present(this.#fixture);
    const variables = { FANOUT_URL: world.gateway.url, FANOUT_TOKEN: this.run.token, ...env };
    return startDriver(this.#language, { folder, args, env: variables });
  }

  /** Runs the driver. Returns its records. */
  drive(args: readonly string[], env?: Record<string, string>): Promise<Record_[]> {
    return this.startDriver(args, env).ended;
  }

  async proxyTo(fates: readonly Fate[]): Promise<FaultyProxy> {
    const proxy = await startFaultyProxy(this.world.gateway.url, fates);
    onTestFinished(() => proxy.stop());
    return proxy;
  }
}

/** Builds the driver and starts the gateway of this suite. If the runtime is missing, the tests are skipped and name it. */
export function prepare(language: Language): Script {
  const script = new Script(language);
  const missing = missingOf(language);
  reportLeftOut(`the stub for ${language.name}`, missing);
  beforeAll(async () => {
    const folder = await mkdtemp(join(tmpdir(), `fanout-${language.name}-`));
    if (missing === null) buildDriver(language, folder);
    await script.start(folder);
  }, 180_000);
  afterAll(() => script.stop());
  beforeEach(async (context) => {
    if (missing !== null) context.skip(`this machine has no ${missing}`);
    await script.openRun();
  });
  return script;
}

export const text = (value: string): Record_ => ({ kind: "text", text: value });

export const texts = (records: readonly Record_[]): string[] =>
  records.map((record) => (record.kind === "text" ? record.text : "FAILED"));

/** The idempotency keys of the requests that a proxy received. */
export const keysOf = ({ requests }: FaultyProxy) => requests.map(({ headers }) => headers["idempotency-key"]);

export const sleep = (ms: number): Promise<false> => new Promise((resolve) => setTimeout(() => resolve(false), ms));

function present<T>(value: T | null): T {
  if (value === null) throw new Error("the suite has not started");
  return value;
}
