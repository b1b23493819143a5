import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "smol-toml";
import { describe, expect, it } from "vitest";
import { withoutPaidFeatures } from "../../../scripts/deploy/free.ts";
import { deploy, type DeployDeps } from "../../../scripts/deploy/steps.ts";
import { ROOT } from "../../../scripts/root.ts";

const UPSTREAMS = { sim: { kind: "simulated" } };
const SECRETS = { ADMIN_KEY: "operator-key-4711-which-is-long-enough", OPENAI_API_KEY: "sk-0815" };
const URL = "https://fanout.somebody.workers.dev";

/** A Cloudflare that answers wrangler's commands by their first words; what is not named succeeds. */
function cloudflare(answers: Record<string, { status: number; output?: string }> = {}, trouble: string | null = null) {
  const did: string[] = [];
  const printed: string[] = [];
  const files: string[] = [];
  const deps: DeployDeps = {
    async wrangler(args) {
      const line = args.join(" ");
      did.push(line);
      const known = Object.entries(answers).find(([words]) => line.startsWith(words))?.[1];
      const output = line.startsWith("deploy") ? `Uploaded fanout\n  ${URL}\nCurrent Version` : "";
      return { status: 0, output, ...known };
    },
    async withFile(text, use) {
      files.push(text);
      return await use("/a/file");
    },
    async trouble(url) {
      did.push(`ask ${url}`);
      return trouble;
    },
    print: (line) => void printed.push(line),
  };
  return { deps, did, printed, files };
}

const plan = (over: object = {}) => ({
  config: { file: "a.toml", vars: { UPSTREAMS, DEFAULT_MODEL: "sim/echo" }, buckets: ["fanout-files"] },
  secrets: SECRETS,
  dryRun: false,
  ...over,
});

describe("npm run deploy", () => {
  it("asks who is logged in, finds the bucket, uploads with the secrets, and sees that it works", async () => {
    const { deps, did, printed, files } = cloudflare();
    expect(await deploy(plan(), deps)).toBeNull();
    expect(did).toEqual([
      "whoami --json",
      "r2 bucket info fanout-files --json",
      "deploy --config a.toml --secrets-file /a/file",
      `ask ${URL}`,
    ]);
    expect(files.map((text): unknown => JSON.parse(text))).toEqual([SECRETS]);
    expect(printed.join()).toContain(URL);
  });

  it("creates a bucket that is missing, once", async () => {
    const { deps, did } = cloudflare({ "r2 bucket info": { status: 1 } });
    expect(await deploy(plan(), deps)).toBeNull();
    expect(did.filter((line) => line.startsWith("r2 bucket create"))).toEqual(["r2 bucket create fanout-files"]);
  });

  it("uploads nothing where it is not logged in, or has no bucket", async () => {
    const stranger = cloudflare({ whoami: { status: 1 } });
    expect(await deploy(plan(), stranger.deps)).toContain("npx wrangler login");
    const poor = cloudflare({ "r2 bucket": { status: 1, output: "enable R2 first" } });
    expect(await deploy(plan(), poor.deps)).toContain("enable R2 first");
    for (const { did } of [stranger, poor]) expect(did.some((line) => line.startsWith("deploy"))).toBe(false);
  });

  it("refuses a configuration that the gateway would refuse, before it asks anybody", async () => {
    const { deps, did } = cloudflare();
    const upstreams = { up: { kind: "openai", base_url: "https://up.example/v1", api_key: "secret:UP_KEY" } };
    const wrong = plan({ config: { file: "a.toml", vars: { UPSTREAMS: upstreams }, buckets: [] } });
    expect(await deploy(wrong, deps)).toBe("UPSTREAMS.up.api_key: reads the secret UP_KEY, which is not set");
    expect(await deploy(plan({ secrets: {} }), deps)).toBe("ADMIN_KEY is not set.");
    const short = { ...SECRETS, ADMIN_KEY: "short" };
    expect(await deploy(plan({ secrets: short }), deps)).toMatch(/^the secret ADMIN_KEY has fewer than 32 characters/);
    expect(did).toEqual([]);
  });

  it("reads the secrets over the vars of wrangler.toml", async () => {
    const { deps } = cloudflare();
    expect(await deploy(plan({ secrets: { ...SECRETS, UPSTREAMS: "not JSON" } }), deps)).toMatch(
      /^UPSTREAMS is not JSON: /,
    );
  });

  it("needs no account for a dry run, and touches none", async () => {
    const { deps, did, printed } = cloudflare();
    expect(await deploy(plan({ dryRun: true }), deps)).toBeNull();
    expect(did).toEqual(["deploy --config a.toml --secrets-file /a/file --dry-run"]);
    expect(printed.join()).toContain("Nothing was uploaded");
  });

  it("says what went wrong after the upload began", async () => {
    const failing = cloudflare({ deploy: { status: 7 } });
    expect(await deploy(plan(), failing.deps)).toContain("7");
    const broken = cloudflare({}, "no upstream");
    expect(await deploy(plan(), broken.deps)).toBe(`Deployed to ${URL}, but the gateway is not usable: no upstream`);
    const routed = cloudflare({ deploy: { status: 0, output: "https://llm.example.com" } });
    expect(await deploy(plan(), routed.deps)).toBeNull();
    expect(routed.did.some((line) => line.startsWith("ask"))).toBe(false);
  });

  it("puts no secret on a command line or on the screen", async () => {
    const { deps, did, printed } = cloudflare();
    await deploy(plan(), deps);
    for (const secret of Object.values(SECRETS)) expect([...did, ...printed].join()).not.toContain(secret);
  });
});

describe("the configuration for the free plan", () => {
  it("has no limits, no buckets and no Workflows, and all else of wrangler.toml", () => {
    const whole = parse(readFileSync(join(ROOT, "wrangler.toml"), "utf8"));
    expect(Object.keys(whole)).toEqual(expect.arrayContaining(["limits", "r2_buckets"]));
    const free = withoutPaidFeatures({ ...whole, workflows: [{ binding: "WORKFLOW" }] });
    const left = Object.keys(whole).filter((key) => key !== "limits" && key !== "r2_buckets");
    expect(Object.keys(free)).toEqual(left);
    for (const key of left) expect(free[key]).toEqual(whole[key]);
  });
});
