import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "smol-toml";
import { describe, expect, it } from "vitest";
import { VARIABLES } from "../../../../src/env.ts";
import { deployOptions } from "../../../../scripts/deploy/options.ts";
import {
  changedConfig,
  withJurisdiction,
  withWorkersAi,
  workerConfigOf,
  type Toml,
} from "../../../../scripts/deploy/worker-config.ts";
import { ROOT } from "../../../../scripts/root.ts";
import { NO_OPTIONS } from "./samples.ts";

const whole: Toml = parse(readFileSync(join(ROOT, "wrangler.toml"), "utf8"));
const changed = (over: Partial<typeof NO_OPTIONS>, toml: Toml = whole) =>
  changedConfig(toml, { ...NO_OPTIONS, ...over });

describe("wrangler.toml", () => {
  it("sets no variable that operators upload as a secret: a deployment would replace the secret", () => {
    const { vars } = workerConfigOf(whole);
    expect(VARIABLES.filter((name) => name in vars)).toEqual([]);
  });

  it("pins traces off, and has the version's id", () => {
    expect(whole["observability"]).toMatchObject({ traces: { enabled: false }, logs: { invocation_logs: false } });
    expect(workerConfigOf(whole).bindings).toContain("CF_VERSION_METADATA");
  });
});

describe("the configuration of a deployment", () => {
  it("is wrangler.toml itself without options that change it", () => {
    expect(changed({})).toBe(whole);
  });

  it("has its buckets and Workflows in the jurisdiction that the variables name", () => {
    const toml = { ...whole, workflows: [{ name: "w", binding: "WORKFLOW" }] };
    expect(withJurisdiction(toml, "eu")).toEqual({
      ...whole,
      r2_buckets: [{ binding: "FILES", bucket_name: "fanout-files", jurisdiction: "eu" }],
      workflows: [{ name: "w", binding: "WORKFLOW", jurisdiction: "eu" }],
    });
    expect(withJurisdiction({ name: "a" }, "us")).toEqual({ name: "a" });
    expect(workerConfigOf(whole, { JURISDICTION: "us" }).jurisdiction).toBe("us");
    expect(workerConfigOf({ ...whole, vars: { JURISDICTION: "eu" } }).jurisdiction).toBe("eu");
    expect(workerConfigOf(whole, { JURISDICTION: "moon" }).jurisdiction).toBeNull();
  });

  it("has the binding of Workers AI beside all else, unless it has one", () => {
    expect(withWorkersAi(whole)).toEqual({ ...whole, ai: { binding: "AI" } });
    expect(workerConfigOf(withWorkersAi(whole)).bindings).toContain("AI");
    const own = { ...whole, ai: { binding: "AI", remote: true } };
    expect(withWorkersAi(own)).toBe(own);
  });

  it("has no limits, buckets and Workflows on the free plan, and all else", () => {
    const { limits, r2_buckets, ...rest } = whole;
    expect([limits, r2_buckets].every((each) => each !== undefined)).toBe(true);
    expect(changed({ isFree: true }, { ...whole, workflows: [{ name: "w" }] })).toEqual(rest);
  });

  it("has no bucket without R2, and all else", () => {
    const { r2_buckets: _, ...rest } = whole;
    expect(changed({ hasNoR2: true })).toEqual(rest);
  });

  it("has a bucket and a Workflow of its own under another name", () => {
    const toml = { ...whole, workflows: [{ name: "fanout-groups", binding: "WORKFLOW" }] };
    expect(changed({ name: "llm" }, toml)).toMatchObject({
      name: "llm",
      r2_buckets: [{ bucket_name: "llm-files" }],
      workflows: [{ name: "llm-groups", binding: "WORKFLOW" }],
      durable_objects: whole["durable_objects"],
    });
    const shared = { ...whole, r2_buckets: [{ binding: "FILES", bucket_name: "company" }] };
    expect(changed({ name: "llm" }, shared)).toMatchObject({ r2_buckets: [{ bucket_name: "company" }] });
  });

  it("has the settings of its environment over those of the file", () => {
    const env = { staging: { routes: ["llm.example.com/*"] }, other: { name: "other" } };
    const staging = changed({ environment: "staging" }, { ...whole, env });
    expect(staging).toMatchObject({ name: "fanout-staging", routes: ["llm.example.com/*"], limits: whole["limits"] });
    expect(staging).not.toHaveProperty("env");
    expect(changed({ environment: "other" }, { ...whole, env })).toMatchObject({ name: "other" });
    expect(changed({ environment: "new" })).toMatchObject({
      name: "fanout-new",
      r2_buckets: [{ bucket_name: "fanout-new-files" }],
    });
  });

  it("is read for what a deployment compares with the account", () => {
    expect(workerConfigOf(whole)).toMatchObject({
      name: "fanout",
      accountId: null,
      buckets: { FILES: "fanout-files" },
      usesWorkersDev: true,
    });
    const toml = {
      name: "a",
      account_id: "x",
      routes: ["a.example/*"],
      kv_namespaces: [{ binding: "KV" }],
      queues: { producers: [{ binding: "QUEUE" }] },
      vars: { binding: "no" },
    };
    const read = workerConfigOf(toml);
    expect(read).toMatchObject({ accountId: "x", usesWorkersDev: false, bindings: ["KV", "QUEUE"] });
    expect(workerConfigOf({ ...toml, workers_dev: true }).usesWorkersDev).toBe(true);
  });
});

describe("the options of a deployment", () => {
  it("are read", () => {
    const args = [
      "--free",
      "--without-r2",
      "--workers-ai",
      "--immediate",
      "--new-key",
      "--new-signing-key",
      "--name",
      "llm",
    ];
    expect(deployOptions([...args, "--env=staging", "--drop", "A,B", "--drop", "C", "--dry-run"])).toEqual({
      isDryRun: true,
      isFree: true,
      hasNoR2: true,
      usesWorkersAi: true,
      isImmediate: true,
      makesAdminKey: true,
      makesSigningKey: true,
      name: "llm",
      environment: "staging",
      isBuild: false,
      drop: ["A", "B", "C"],
    });
    expect(deployOptions([])).toEqual(NO_OPTIONS);
    expect(deployOptions([], { WORKERS_CI: "1" })).toEqual({ ...NO_OPTIONS, isBuild: true });
  });

  it.each([
    [["--force"], "Unknown option: --force."],
    [["--toString"], "Unknown option: --toString."],
    [["fanout"], "The options are not complete"],
    [["--name"], "The options are not complete"],
    [["--name", "Fan_Out"], "--name must be"],
    [["--env", "a/b"], "--env must be"],
  ])("are refused with a sentence: %j", (args, sentence) => {
    expect(deployOptions(args)).toContain(sentence);
  });
});
