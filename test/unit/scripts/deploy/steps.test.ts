import { describe, expect, it } from "vitest";
import type { ApiAnswer } from "../../../../scripts/deploy/account.ts";
import { deploy, type DeployDeps, type Deployment, type Ran } from "../../../../scripts/deploy/steps.ts";
import { NO_OPTIONS, configOf } from "./samples.ts";

const KEY = "operator-key-0123456789-0123456789";
const LOCAL = { ADMIN_KEY: KEY, SIGNING_KEY: KEY, OPENAI_API_KEY: "sk-0815" };
const URL = "https://fanout.somebody.workers.dev";
const VERSION = "5a6b7c8d-0000-4000-8000-000000000001";

type World = {
  /** wrangler's ends, by the first words of its arguments; what is not named succeeds. */
  ends?: Record<string, Partial<Ran>>;
  /** Answers of the API, by the end of the path; what is not named is empty or not found. */
  answers?: Record<string, ApiAnswer>;
  isLoggedIn?: boolean;
  trouble?: string | null;
  /** What is said of upstreams if some are configured. */
  unreachable?: string[];
  /** What the operator answers to the offer. */
  agrees?: boolean;
};

/** Records what a deployment does, in order. */
function world({
  ends = {},
  answers = {},
  isLoggedIn = true,
  trouble = null,
  unreachable = [],
  agrees = false,
}: World = {}) {
  const did: string[] = [];
  const printed: string[] = [];
  const files: string[] = [];
  const deps: DeployDeps = {
    async wrangler(args) {
      const line = args.join(" ");
      did.push(line);
      const known = Object.entries(ends).find(([words]) => line.startsWith(words))?.[1];
      const output = line.startsWith("deploy") ? `Uploaded fanout\n  ${URL}\nCurrent Version ID: ${VERSION}` : "";
      return { status: 0, output, ...known };
    },
    async login() {
      if (!isLoggedIn) return null;
      const none: ApiAnswer = { ok: false, status: 404, code: 10007, message: "none" };
      const here = (path: string) => Object.entries(answers).find(([end]) => path.endsWith(end))?.[1];
      const subdomain: ApiAnswer = { ok: true, result: {} };
      const read = async (path: string) => here(path) ?? (path.endsWith("/subdomain") ? subdomain : none);
      return { read, accountId: "a1" };
    },
    async withFile(text, use) {
      files.push(text);
      return await use("/a/file");
    },
    withConfig: ({ workersAi, jurisdiction }, use) => use(`${jurisdiction ?? (workersAi ? "ai" : "a")}.toml`),
    writeVariables: (variables) => void did.push(`write ${Object.keys(variables).join(" ")}`),
    async confirm(question) {
      printed.push(question);
      return agrees;
    },
    freshKey: () => "fresh-key-0123456789-0123456789-01",
    async trouble({ url, adminKey, versionId }) {
      did.push(`ask ${url} ${adminKey === null ? "as a stranger" : "as the operator"} for ${versionId}`);
      return trouble;
    },
    async unreachable(vars) {
      return typeof vars["UPSTREAMS"] === "string" ? unreachable : [];
    },
    print: (line) => void printed.push(line),
  };
  return { deps, did, printed, files };
}

const deployment = (over: Partial<Deployment> = {}): Deployment => ({
  options: NO_OPTIONS,
  config: configOf(),
  local: LOCAL,
  secretsFile: ".deploy.vars",
  ...over,
});

describe("the steps of a deployment", () => {
  it("create the bucket, write new keys, upload, and wait for the deployed version, in this order", async () => {
    const { deps, did, printed, files } = world();
    expect(await deploy(deployment({ local: { OPENAI_API_KEY: "sk-0815" } }), deps)).toBeNull();
    expect(did).toEqual([
      "r2 bucket create fanout-files",
      "write ADMIN_KEY SIGNING_KEY",
      "deploy --config a.toml --secrets-file /a/file",
      `ask ${URL} as the operator for ${VERSION}`,
    ]);
    expect(files.map((text): unknown => JSON.parse(text))).toMatchObject([{ OPENAI_API_KEY: "sk-0815" }]);
    expect(printed.at(-1)).toContain(`fanout is ready at ${URL}`);
  });

  it("upload no file of secrets from a checkout without any, and ask as a stranger", async () => {
    const settings = { bindings: [{ name: "RUN", type: "durable_object_namespace" }] };
    const secrets = ["ADMIN_KEY", "SIGNING_KEY", "UPSTREAMS"].map((name) => ({ name }));
    const answers = {
      "/settings": { ok: true, result: settings },
      "/secrets": { ok: true, result: secrets },
      "/fanout-files": { ok: true, result: {} },
    } as const;
    const { deps, did, files } = world({ answers });
    expect(await deploy(deployment({ local: {}, options: { ...NO_OPTIONS, isImmediate: true } }), deps)).toBeNull();
    expect(files).toEqual([]);
    expect(did).toEqual([
      "deploy --config a.toml --durable-objects-code-update-mode immediate",
      `ask ${URL} as a stranger for ${VERSION}`,
    ]);
  });

  it.each([
    ["without a login", { isLoggedIn: false }, {}, "npx wrangler login"],
    ["where the account is not ready", { answers: { "/fanout-files": no(403, 10042) } }, {}, "--without-r2"],
    ["with a configuration that the gateway refuses", {}, { local: { ...LOCAL, UPSTREAMS: "{" } }, "UPSTREAMS"],
  ])("change nothing %s", async (_, around, over, sentence) => {
    const { deps, did } = world(around);
    expect(await deploy(deployment(over), deps)).toContain(sentence);
    expect(did).toEqual([]);
  });

  it("delete the bucket again if the plan of the account refuses the upload, and only then", async () => {
    const refused = world({ ends: { deploy: { status: 1, output: "CPU limits are not supported. [code: 100328]" } } });
    expect(await deploy(deployment(), refused.deps)).toMatch(
      /npm run deploy -- --free.*\nNothing was changed in the account/,
    );
    expect(refused.did.at(-1)).toBe("r2 bucket delete fanout-files");
    const failed = world({ ends: { deploy: { status: 7, output: "" } } });
    expect(await deploy(deployment(), failed.deps)).toContain("exit status 7");
    expect(failed.did.filter((line) => line.includes("delete"))).toEqual([]);
  });

  it.each([false, true])("warn of upstreams that cannot be reached, and go on (dry run: %s)", async (isDryRun) => {
    const { deps, did, printed } = world({ unreachable: ["the upstream up cannot be reached"] });
    const UPSTREAMS = '{"up":{"kind":"openai","base_url":"https://up.test/v1"}}';
    const options = { ...NO_OPTIONS, isDryRun };
    expect(await deploy(deployment({ local: { ...LOCAL, UPSTREAMS }, options }), deps)).toBeNull();
    expect(printed).toContain("Warning: the upstream up cannot be reached.");
    expect(did.some((line) => line.startsWith("deploy"))).toBe(true);
  });

  it("stop where a bucket cannot be created, and delete those that were", async () => {
    const { deps, did } = world({ ends: { "r2 bucket create b": { status: 1, output: "no room" } } });
    const config = configOf({ buckets: { A: "a", B: "b" } });
    expect(await deploy(deployment({ config }), deps)).toContain("no room");
    expect(did).toEqual(["r2 bucket create a", "r2 bucket create b", "r2 bucket delete a"]);
  });

  it("make and delete buckets in the jurisdiction, and upload a configuration that names it", async () => {
    const made = world();
    const config = configOf({ jurisdiction: "eu" });
    expect(await deploy(deployment({ config, local: { ...LOCAL, JURISDICTION: "eu" } }), made.deps)).toBeNull();
    expect(made.did.slice(0, 2)).toEqual([
      "r2 bucket create fanout-files --jurisdiction eu",
      "deploy --config eu.toml --secrets-file /a/file",
    ]);
    const two = configOf({ jurisdiction: "eu", buckets: { A: "a", B: "b" } });
    const failing = world({ ends: { "r2 bucket create b": { status: 1, output: "no room" } } });
    expect(await deploy(deployment({ config: two }), failing.deps)).toContain("no room");
    expect(failing.did.at(-1)).toBe("r2 bucket delete a --jurisdiction eu");
  });

  it("say what is wrong with a gateway that was deployed and is not usable", async () => {
    const { deps } = world({ trouble: "no upstream" });
    expect(await deploy(deployment(), deps)).toBe(`Deployed to ${URL}, but the gateway is not usable: no upstream`);
    const answers = {
      "/settings": { ok: true, result: { bindings: [{ name: "RUN", type: "durable_object_namespace" }] } },
      "/secrets": { ok: true, result: [{ name: "ADMIN_KEY" }] },
    } as const;
    const again = await deploy(deployment({ local: {} }), world({ answers, trouble: "a weak key" }).deps);
    expect(again).toContain("a weak key\nTo go back to the version before: npx wrangler rollback --name fanout");
    const routed = world({ ends: { deploy: { status: 0, output: "https://llm.example.com" } } });
    expect(await deploy(deployment(), routed.deps)).toBeNull();
    expect(routed.did.some((line) => line.startsWith("ask"))).toBe(false);
  });

  it("offer Workers AI where no provider is configured, and bind it only if the operator agrees", async () => {
    const refused = world();
    expect(await deploy(deployment(), refused.deps)).toBeNull();
    expect(refused.printed.join()).toContain("No provider is configured");
    expect(refused.did).toContain("deploy --config a.toml --secrets-file /a/file");
    const agreed = world({ agrees: true });
    expect(await deploy(deployment(), agreed.deps)).toBeNull();
    expect(agreed.did.slice(1, 3)).toEqual([
      "write UPSTREAMS DEFAULT_MODEL",
      "deploy --config ai.toml --secrets-file /a/file",
    ]);
    expect(agreed.files.map((text): unknown => JSON.parse(text))).toMatchObject([
      { UPSTREAMS: '{"workers-ai":{"kind":"workers-ai"}}' },
    ]);
  });

  it("ask nobody where a provider is configured, where it was said already, and in a dry run", async () => {
    const UPSTREAMS = '{"up":{"kind":"simulated"}}';
    for (const over of [
      { local: { ...LOCAL, UPSTREAMS } },
      { options: { ...NO_OPTIONS, usesWorkersAi: true } },
      { options: { ...NO_OPTIONS, isDryRun: true } },
    ]) {
      const { deps, printed } = world({ agrees: true });
      expect(await deploy(deployment(over), deps)).toBeNull();
      expect(printed.join()).not.toContain("No provider is configured");
    }
  });

  describe("in a build of Cloudflare's", () => {
    const build = (over: Partial<Deployment> = {}) =>
      deployment({ local: {}, options: { ...NO_OPTIONS, isBuild: true }, ...over });
    const placeholder = (...names: string[]) => ({
      "/settings": { ok: true, result: { bindings: [] } } as const,
      "/secrets": { ok: true, result: names.map((name) => ({ name })) } as const,
    });

    it("answer with Workers AI, and ask nobody", async () => {
      const { deps, did, printed, files } = world({ answers: placeholder("ADMIN_KEY") });
      expect(await deploy(build(), deps)).toBeNull();
      expect(did).toEqual([
        "r2 bucket create fanout-files",
        "deploy --config ai.toml --secrets-file /a/file",
        `ask ${URL} as a stranger for ${VERSION}`,
      ]);
      expect(files.map((text): unknown => Object.keys(JSON.parse(text)))).toEqual([["UPSTREAMS", "DEFAULT_MODEL"]]);
      expect(printed.join()).not.toContain("No provider is configured");
    });

    it("make no key that nobody could read, and say where to set one", async () => {
      const { deps, did, printed } = world();
      expect(await deploy(build(), deps)).toBeNull();
      expect(did.filter((line) => /^(write|ask)/.test(line))).toEqual([]);
      expect(printed.join()).toContain("has no ADMIN_KEY yet");
    });

    it("keep the upstreams that the Worker has", async () => {
      const { deps, files } = world({ answers: placeholder("ADMIN_KEY", "UPSTREAMS") });
      expect(await deploy(build(), deps)).toBeNull();
      expect(files).toEqual([]);
    });
  });

  it("need no account in a dry run, and write no keys", async () => {
    const { deps, did, printed } = world({ isLoggedIn: false });
    const dry = deployment({ local: {}, options: { ...NO_OPTIONS, isDryRun: true, isFree: true } });
    expect(await deploy(dry, deps)).toBeNull();
    expect(did).toEqual(["deploy --config a.toml --secrets-file /a/file --dry-run"]);
    expect(printed.join()).toContain("Nothing was uploaded");
    expect(printed.join()).toContain("On Cloudflare's free plan:");
  });

  it("put no secret on a command line or on the screen", async () => {
    const { deps, did, printed } = world({ ends: { deploy: { status: 1 } } });
    const said = await deploy(deployment(), deps);
    for (const secret of Object.values(LOCAL)) expect([...did, ...printed, said].join()).not.toContain(secret);
  });
});

function no(status: number, code: number): ApiAnswer {
  return { ok: false, status, code, message: "no" };
}
