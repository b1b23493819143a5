/** What the rules share: the gateway, a provider that counts, tools, a run of each test's own, and the language's driver. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, onTestFinished } from "vitest";
import { startWorld, type RunAccess, type World } from "../contract/world.ts";
import { startFaultyProxy, type Fate, type FaultyProxy } from "../support/faulty-proxy.ts";
import { startToolServer, type ToolServer } from "../support/tool-server.ts";
import { buildDriver, drive, missingOf, type Driven, type Language, type Record_ } from "./language.ts";

export class Script {
  readonly #language: Language;
  #place: { world: World; tools: ToolServer; folder: string } | null = null;
  #run: RunAccess | null = null;
  #released = Promise.resolve();
  /** Lets the prompts that wait be answered. */
  release: () => void = () => undefined;

  constructor(language: Language) {
    this.#language = language;
  }

  get world(): World {
    return present(this.#place).world;
  }

  get tools(): ToolServer {
    return present(this.#place).tools;
  }

  /** The run whose token the stub has in this test. */
  get run(): RunAccess {
    return present(this.#run);
  }

  async open(folder: string): Promise<void> {
    const tools = await startToolServer();
    const waits = ({ prompt }: { prompt: string }) => (prompt.includes("wait for it") ? { after: this.#released } : {});
    const world = await startWorld(waits, { TOOL_HOSTS: tools.host });
    this.#place = { world, tools, folder };
  }

  async begin(): Promise<void> {
    this.world.upstream.forget();
    this.#run = await this.world.openRun({ default_model: "up-1", budget: { usd: 1 }, max_parallel: 32 });
  }

  async close(): Promise<void> {
    const { world, tools, folder } = present(this.#place);
    await Promise.all([world.stop(), tools.stop(), rm(folder, { recursive: true, force: true })]);
  }

  /** From now on prompts that say "wait for it" wait. */
  hold(): void {
    this.#released = new Promise((resolve) => (this.release = resolve));
  }

  start(args: readonly string[], env: Record<string, string> = {}): Driven {
    const { world, folder } = present(this.#place);
    const own = { FANOUT_URL: world.gateway.url, FANOUT_TOKEN: this.run.token, ...env };
    return drive(this.#language, { folder, args, env: own });
  }

  /** What the driver writes until it ends. */
  ask(args: readonly string[], env?: Record<string, string>): Promise<Record_[]> {
    return this.start(args, env).ended;
  }

  async proxyTo(fates: readonly Fate[]): Promise<FaultyProxy> {
    const proxy = await startFaultyProxy(this.world.gateway.url, fates);
    onTestFinished(() => proxy.stop());
    return proxy;
  }
}

/** Builds the driver and opens the place for the tests of this suite. Where its runtime is missing they are left out, and say so. */
export function prepare(language: Language): Script {
  const script = new Script(language);
  const missing = missingOf(language);
  beforeAll(async () => {
    const folder = await mkdtemp(join(tmpdir(), `fanout-${language.name}-`));
    if (missing === null) buildDriver(language, folder);
    await script.open(folder);
  }, 180_000);
  afterAll(() => script.close());
  beforeEach(async (context) => {
    if (missing !== null) context.skip(`this machine has no ${missing}`);
    await script.begin();
  });
  return script;
}

export const text = (value: string): Record_ => ({ kind: "text", text: value });

export const texts = (records: readonly Record_[]): string[] =>
  records.map((record) => (record.kind === "text" ? record.text : "FAILED"));

/** The keys that a proxy was asked under. */
export const keysOf = ({ requests }: FaultyProxy) => requests.map(({ headers }) => headers["idempotency-key"]);

export const sleep = (ms: number): Promise<false> => new Promise((resolve) => setTimeout(() => resolve(false), ms));

function present<T>(value: T | null): T {
  if (value === null) throw new Error("the suite has not begun");
  return value;
}
