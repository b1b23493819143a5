/**
 * `npm run deploy` with the real wrangler against a stand-in of Cloudflare's API: what deployments from several clones upload, and
 * what accounts that cannot take a gateway are told. The decisions are tested in `test/unit/scripts/deploy`.
 */
import { spawn } from "node:child_process";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { ROOT } from "../../scripts/root.ts";
import { AiService } from "../support/ai-binding.ts";
import { account, API_TOKEN, startCloudflareApi, type Account, type CloudflareApi } from "../support/cloudflare-api.ts";
import { makeClone, type Clone } from "../support/clone.ts";
import { startGateway } from "../support/gateway.ts";
import { budgetOf } from "./v1-world.ts";

const KV = { name: "KV", type: "kv_namespace" };
const UPSTREAMS =
  '{"openai":{"kind":"openai","base_url":"https://api.openai.com/v1","api_key":"secret:OPENAI_API_KEY"}}';
const DEPLOY_VARS = `OPENAI_API_KEY=sk-0815\nDEFAULT_MODEL=openai/gpt-4o-mini\nUPSTREAMS='${UPSTREAMS}'\n`;

let home = "";
let api: CloudflareApi | null = null;
const clones: Clone[] = [];
beforeAll(async () => void (home = await mkdtemp(join(tmpdir(), "fanout-home-"))));
afterAll(() => rm(home, { recursive: true, force: true }));
afterEach(async () => {
  await api?.stop();
  await Promise.all(clones.splice(0).map((clone) => clone.remove()));
});

async function serve(...accounts: Account[]): Promise<CloudflareApi> {
  api = await startCloudflareApi(accounts);
  return api;
}

async function clone(deployVars?: string): Promise<string> {
  const made = await makeClone();
  clones.push(made);
  if (deployVars !== undefined) writeFileSync(join(made.folder, ".deploy.vars"), deployVars);
  return made.folder;
}

type Ended = { status: number | null; output: string };

function deploy(cwd: string, flags: readonly string[] = [], more: Record<string, string> = {}): Promise<Ended> {
  const env = {
    PATH: process.env["PATH"] ?? "",
    HOME: home,
    WRANGLER_LOG_PATH: home,
    CLOUDFLARE_API_BASE_URL: api?.url ?? "",
    CLOUDFLARE_API_TOKEN: API_TOKEN,
    NODE_OPTIONS: `--import=${join(ROOT, "test/support/workers-dev.mjs")}`,
    ...more,
  };
  const child = spawn(process.execPath, ["--", "scripts/deploy.ts", ...flags], { cwd, env });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => (output += text));
  return new Promise((resolve) => child.once("close", (status) => resolve({ status, output })));
}

const secretsOf = ({ workers }: Account, name = "fanout") =>
  Object.fromEntries(
    (workers.get(name) ?? []).flatMap((each) => (each.type === "secret_text" ? [[each.name, each.text]] : [])),
  );
const varsOf = (folder: string) => parseEnv(readFileSync(join(folder, ".deploy.vars"), "utf8"));

/** A gateway with these secrets, and with what is behind the binding, answers a call that names no model, and charges what is billed. */
async function expectAnswers(secrets: Record<string, string | undefined>): Promise<void> {
  const service = new AiService();
  const stopService = await service.start();
  const { UPSTREAMS, DEFAULT_MODEL } = secrets;
  const gateway = await startGateway({ ai: service.address, vars: { UPSTREAMS, DEFAULT_MODEL } });
  try {
    const run = await gateway.openRun({ budget: { usd: 1 } });
    const answer = await gateway.fetch("/query", { token: run.token, json: { prompt: "one two three" } });
    expect(await answer.json()).toMatchObject({ text: "three two one" });
    await expect.poll(async () => (await budgetOf(gateway, run.token)).usd.reserved).toBe(0);
    const { usd } = await budgetOf(gateway, run.token);
    expect(Math.round(usd.spent * 1e9)).toBe(service.nanoUsd);
  } finally {
    await gateway.stop();
    await stopService();
  }
}

/** A test runs wrangler up to three times, which bundles the gateway each time. */
describe("npm run deploy, in an account", { timeout: 300_000 }, () => {
  it(
    "leaves secrets and keys as they are from a second clone, in CI and in an emergency",
    { tags: ["slow"] },
    async () => {
      const { accounts, uploads, changes } = await serve(account());
      const [owner = account()] = accounts;
      const first = await clone(DEPLOY_VARS);
      const begun = await deploy(first);
      expect(begun, begun.output).toMatchObject({ status: 0 });
      expect(begun.output).toContain("fanout is ready at https://fanout.somebody.workers.dev");
      expect(changes).toContain("POST /r2/buckets");
      expect(uploads).toMatchObject([{ observability: { enabled: true, traces: { enabled: false } } }]);
      const secrets = secretsOf(owner);
      expect(secrets).toEqual(varsOf(first));
      expect(Object.keys(secrets).toSorted()).toEqual([
        "ADMIN_KEY",
        "DEFAULT_MODEL",
        "OPENAI_API_KEY",
        "SIGNING_KEY",
        "UPSTREAMS",
      ]);
      expect(statSync(join(first, ".deploy.vars")).mode & 0o777).toBe(0o600);
      for (const value of Object.values(secrets)) expect(begun.output).not.toContain(value);

      const second = await clone();
      const inCi = { CI: "1", CLOUDFLARE_ACCOUNT_ID: owner.id };
      for (const [flags, env] of [
        [[], {}],
        [[], inCi],
        [["--immediate"], inCi],
      ] as const) {
        changes.length = 0;
        const again = await deploy(second, flags, env);
        expect(again, again.output).toMatchObject({ status: 0 });
        expect(again.output).toContain("Kept as they are, because .deploy.vars has none: ");
        expect(again.output).toContain("fanout is ready at");
        expect(secretsOf(owner)).toEqual(secrets);
        expect(uploads.at(-1)?.bindings.filter(({ type }) => /text|json/.test(type))).toEqual([]);
        expect(changes.filter((change) => /r2|secrets/.test(change))).toEqual([]);
        expect(existsSync(join(second, ".deploy.vars"))).toBe(false);
      }
      const modes = uploads.map(({ code_update_strategy }) => code_update_strategy?.mode);
      expect(modes).toEqual(["deferred", "deferred", "deferred", "immediate"]);
    },
  );

  it.each([
    ["no workers.dev subdomain", { subdomain: null }, "has no workers.dev subdomain"],
    ["R2 off", { buckets: null }, "npm run deploy -- --without-r2"],
    ["the free plan", { plan: "free" as const }, "npm run deploy -- --free"],
    ["a Worker of that name that is another program", { workers: new Map([["fanout", [KV]]]) }, "is not this gateway"],
  ])(
    "says in one sentence what stands in the way, and changes nothing: %s",
    { tags: ["slow"] },
    async (_, over, sentence) => {
      const { accounts, uploads } = await serve(account(over));
      const [before] = structuredClone(accounts);
      const { status, output } = await deploy(await clone(DEPLOY_VARS));
      expect(status, output).toBe(1);
      expect(output.trim().split("\n").at(-2)).toContain(sentence);
      expect(output.trim().split("\n").at(-1)).toBe("Nothing was changed in the account.");
      expect(accounts).toEqual([before]);
      expect(uploads).toEqual([]);
    },
  );

  it("asks which of several accounts is meant, and uses the one that is named", { tags: ["slow"] }, async () => {
    const other = account({ id: "f".repeat(32), name: "Other", subdomain: "other" });
    const { changes, accounts } = await serve(account(), other);
    const folder = await clone(DEPLOY_VARS);
    const asked = await deploy(folder);
    expect([asked.status, changes]).toEqual([1, []]);
    expect(asked.output).toContain("The login has 2 accounts. Set CLOUDFLARE_ACCOUNT_ID");
    const told = await deploy(folder, [], { CLOUDFLARE_ACCOUNT_ID: other.id });
    expect(told, told.output).toMatchObject({ status: 0 });
    expect(accounts.map(({ workers }) => [...workers.keys()])).toEqual([[], ["fanout"]]);
  });

  it("deploys where there is neither R2 nor a paid plan if it is asked to", { tags: ["slow"] }, async () => {
    const { accounts, uploads } = await serve(account({ plan: "free", buckets: null }));
    const { status, output } = await deploy(await clone(DEPLOY_VARS), ["--free"]);
    expect(status, output).toBe(0);
    expect(uploads[0]?.bindings.map(({ name }) => name)).not.toContain("FILES");
    expect([...(accounts[0]?.workers.keys() ?? [])]).toEqual(["fanout"]);
  });

  it("deploys a second gateway with a bucket, secrets and keys of its own", { tags: ["slow"] }, async () => {
    const { accounts } = await serve(account());
    const [owner = account()] = accounts;
    const folder = await clone(DEPLOY_VARS);
    await deploy(folder);
    const { status, output } = await deploy(folder, ["--env", "staging"]);
    expect(status, output).toBe(0);
    expect([...owner.workers.keys()]).toEqual(["fanout", "fanout-staging"]);
    expect([...(owner.buckets ?? [])]).toEqual(["fanout-files", "fanout-staging-files"]);
    const staging = secretsOf(owner, "fanout-staging");
    expect(Object.keys(staging).toSorted()).toEqual(["ADMIN_KEY", "SIGNING_KEY"]);
    expect(staging["ADMIN_KEY"]).not.toBe(secretsOf(owner)["ADMIN_KEY"]);
    expect(parseEnv(readFileSync(join(folder, ".deploy.vars.staging"), "utf8"))).toEqual(staging);
  });

  it(
    "answers with a real model and no key where it is asked for Workers AI, and stays so",
    { tags: ["slow"] },
    async () => {
      const { accounts, uploads } = await serve(account());
      const [owner = account()] = accounts;
      const first = await clone();
      const begun = await deploy(first, ["--workers-ai"]);
      expect(begun, begun.output).toMatchObject({ status: 0 });
      expect(uploads.at(-1)?.bindings).toContainEqual({ name: "AI", type: "ai" });
      const secrets = secretsOf(owner);
      expect(secrets).toEqual(varsOf(first));
      // A clone that knows nothing of it.
      const again = await deploy(await clone());
      expect(again, again.output).toMatchObject({ status: 0 });
      expect(uploads.at(-1)?.bindings).toContainEqual({ name: "AI", type: "ai" });
      expect(secretsOf(owner)).toEqual(secrets);
      await expectAnswers(secrets);
    },
  );

  it(
    "keeps the bucket in a jurisdiction, from any clone, and moves no gateway into one",
    { tags: ["slow"] },
    async () => {
      const { accounts, uploads } = await serve(account());
      const [owner = account()] = accounts;
      const inEurope = `${DEPLOY_VARS}JURISDICTION=eu\n`;
      const begun = await deploy(await clone(inEurope));
      expect(begun, begun.output).toMatchObject({ status: 0 });
      expect([...(owner.buckets ?? [])]).toEqual(["eu/fanout-files"]);
      const again = await deploy(await clone());
      expect(again, again.output).toMatchObject({ status: 0 });
      for (const { bindings } of uploads) {
        expect(bindings.find(({ name }) => name === "FILES")).toMatchObject({ jurisdiction: "eu" });
      }
      expect(secretsOf(owner)).toMatchObject({ JURISDICTION: "eu" });
      const before = structuredClone(accounts);
      const moved = await deploy(await clone(inEurope.replace("=eu", "=us")));
      expect([moved.status, accounts]).toEqual([1, before]);
      expect(moved.output).toContain("outside of the jurisdiction us, and data cannot move");
    },
  );

  it(
    "deploys where Cloudflare builds the repository, onto the Worker that the page has made",
    { tags: ["slow"] },
    async () => {
      const key = { name: "ADMIN_KEY", type: "secret_text", text: "operator-key-0123456789-0123456789" };
      const { accounts, uploads } = await serve(account({ workers: new Map([["fanout", [key]]]) }));
      const folder = await clone();
      const { status, output } = await deploy(folder, [], { CI: "1", WORKERS_CI: "1" });
      expect(status, output).toBe(0);
      expect(uploads.at(-1)?.bindings).toContainEqual({ name: "AI", type: "ai" });
      const secrets = secretsOf(accounts[0] ?? account());
      expect(Object.keys(secrets).toSorted()).toEqual(["ADMIN_KEY", "DEFAULT_MODEL", "UPSTREAMS"]);
      expect(secrets["ADMIN_KEY"]).toBe(key.text);
      expect(existsSync(join(folder, ".deploy.vars"))).toBe(false);
    },
  );

  it("stops before it loses a setting that only the Worker has", { tags: ["slow"] }, async () => {
    const deployed = [
      { name: "RUN", type: "durable_object_namespace", class_name: "RunObject" },
      { name: "ADMIN_KEY", type: "secret_text", text: "operator-key-0123456789-0123456789" },
      { name: "MAX_BUDGET_USD", type: "plain_text", text: "5" },
    ];
    const { accounts, changes } = await serve(account({ workers: new Map([["fanout", deployed]]) }));
    const before = structuredClone(accounts);
    const { status, output } = await deploy(await clone());
    expect([status, changes, accounts]).toEqual([1, [], before]);
    expect(output).toContain("a deployment would lose them: MAX_BUDGET_USD.");
  });
});
