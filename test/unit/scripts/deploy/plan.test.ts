import { describe, expect, it } from "vitest";
import type { RemoteBinding } from "../../../../scripts/deploy/account.ts";
import type { DeployOptions } from "../../../../scripts/deploy/options.ts";
import { planDeployment, VARIABLE_BYTES_MAX, type PlanInput } from "../../../../scripts/deploy/plan.ts";
import { NO_OPTIONS, configOf } from "./samples.ts";

const KEY = "operator-key-0123456789-0123456789";
const RUN: RemoteBinding = { name: "RUN", type: "durable_object_namespace", class_name: "RunObject" };
const FILES: RemoteBinding = { name: "FILES", type: "r2_bucket", bucket_name: "fanout-files" };
const OPENAI = { kind: "openai", base_url: "https://api.openai.com/v1", api_key: "secret:OPENAI_API_KEY" };

type Over = Partial<Omit<PlanInput, "options" | "worker">> & {
  options?: Partial<DeployOptions>;
  vars?: Record<string, unknown>;
  secrets?: string[];
  bindings?: RemoteBinding[];
};

/** Without `secrets` and `bindings`: the first deployment. */
function plan({ options, vars, secrets, bindings, ...over }: Over = {}) {
  let keys = 0;
  const exists = secrets !== undefined || bindings !== undefined;
  return planDeployment({
    options: { ...NO_OPTIONS, ...options },
    config: configOf({ vars }),
    local: {},
    secretsFile: ".deploy.vars",
    worker: exists ? { secrets: secrets ?? ["ADMIN_KEY", "SIGNING_KEY"], bindings: [RUN, ...(bindings ?? [])] } : null,
    freshKey: () => `fresh-key-${++keys}-0123456789-0123456789`,
    ...over,
  });
}

function planned(over: Over = {}) {
  const result = plan(over);
  if (!result.ok) throw new Error(result.message);
  return result.plan;
}

function refusal(over: Over = {}): string {
  const result = plan(over);
  if (result.ok) throw new Error("it was planned");
  return result.message;
}

const FRESH_1 = "fresh-key-1-0123456789-0123456789";
const FRESH_2 = "fresh-key-2-0123456789-0123456789";

describe("the keys of a deployment", () => {
  it("are made for the first one, unless the file has them", () => {
    expect(planned().secrets).toEqual({ ADMIN_KEY: FRESH_1, SIGNING_KEY: FRESH_2 });
    expect(planned().written).toEqual({ ADMIN_KEY: FRESH_1, SIGNING_KEY: FRESH_2 });
    expect(planned({ local: { ADMIN_KEY: KEY } }).written).toEqual({ SIGNING_KEY: FRESH_1 });
    expect(planned({ local: { ADMIN_KEY: KEY, SIGNING_KEY: KEY } }).written).toEqual({});
  });

  it("are not made for a Worker that has them", () => {
    const { secrets, written, kept } = planned({ secrets: ["ADMIN_KEY", "SIGNING_KEY", "UPSTREAMS"] });
    expect([secrets, written, kept]).toEqual([{}, {}, ["ADMIN_KEY", "SIGNING_KEY", "UPSTREAMS"]]);
  });

  it("get no SIGNING_KEY if the Worker has only an ADMIN_KEY, even one of the file: its runs' tokens are signed with a derived key", () => {
    expect(planned({ secrets: ["ADMIN_KEY"] }).written).toEqual({});
    const { secrets, notes } = planned({ secrets: ["ADMIN_KEY"], local: { ADMIN_KEY: KEY, SIGNING_KEY: KEY } });
    expect(secrets).toEqual({ ADMIN_KEY: KEY });
    expect(notes.join()).toContain("SIGNING_KEY of .deploy.vars is not uploaded");
    const rotated = { ADMIN_KEY: KEY, SIGNING_KEY: KEY, SIGNING_KEY_PREVIOUS: "derived" };
    expect(planned({ secrets: ["ADMIN_KEY"], local: rotated }).secrets).toEqual(rotated);
  });

  it("are completed for a Worker without an ADMIN_KEY", () => {
    expect(planned({ secrets: [] }).written).toEqual({ ADMIN_KEY: FRESH_1, SIGNING_KEY: FRESH_2 });
    expect(planned({ secrets: ["SIGNING_KEY"] }).written).toEqual({ ADMIN_KEY: FRESH_1 });
  });

  it("are replaced if the operator asks for it", () => {
    const local = { ADMIN_KEY: KEY, SIGNING_KEY: KEY };
    const options = { makesAdminKey: true };
    const replaced = planned({ options, local, secrets: ["ADMIN_KEY", "SIGNING_KEY"] });
    expect(replaced.secrets).toEqual({ ADMIN_KEY: FRESH_1, SIGNING_KEY: KEY });
    expect(replaced.notes).toEqual([expect.stringContaining("UPSTREAMS is not set")]);
    expect(planned({ options, secrets: ["ADMIN_KEY", "UPSTREAMS"] }).notes[0]).toContain("they are invalid now");
  });

  it("accept the tokens of the replaced signing key, the derived one too, as far as it is known", () => {
    const options = { makesSigningKey: true };
    const written = (over: Over) => planned({ options, ...over }).written;
    expect(written({ secrets: ["ADMIN_KEY"] })).toEqual({ SIGNING_KEY: FRESH_1, SIGNING_KEY_PREVIOUS: "derived" });
    const both = ["ADMIN_KEY", "SIGNING_KEY"];
    expect(written({ secrets: both, local: { SIGNING_KEY: KEY } })).toEqual({
      SIGNING_KEY: FRESH_1,
      SIGNING_KEY_PREVIOUS: KEY,
    });
    expect(written({ secrets: both })).toEqual({ SIGNING_KEY: FRESH_1 });
    expect(written({ secrets: both, local: { SIGNING_KEY: "short" } })).toEqual({ SIGNING_KEY: FRESH_1 });
    expect(planned({ options, secrets: both }).notes[0]).toContain("are invalid now");
  });
});

describe("Workers AI", () => {
  const AI: RemoteBinding = { name: "AI", type: "ai" };

  it("is uploaded and written to the file with an upstream of its own, and is known to the checks", () => {
    const { secrets, written, bindsWorkersAi, known, notes } = planned({ options: { usesWorkersAi: true } });
    expect(bindsWorkersAi).toBe(true);
    expect(Object.keys(secrets).toSorted()).toEqual(["ADMIN_KEY", "DEFAULT_MODEL", "SIGNING_KEY", "UPSTREAMS"]);
    expect(written).toEqual(secrets);
    expect(known).toMatchObject({ UPSTREAMS: secrets["UPSTREAMS"] });
    expect(notes).toEqual([expect.stringContaining("10,000 neurons a day are free")]);
  });

  it("stays bound in later deployments, from any clone, until it is given up", () => {
    const secrets = ["ADMIN_KEY", "SIGNING_KEY", "UPSTREAMS"];
    expect(planned({ secrets, bindings: [AI] })).toMatchObject({ bindsWorkersAi: true, written: {} });
    expect(planned({ secrets, bindings: [AI], options: { drop: ["AI"] } }).bindsWorkersAi).toBe(false);
    expect(planned({ secrets }).bindsWorkersAi).toBe(false);
  });

  it("needs the name AI for itself", () => {
    expect(refusal({ options: { usesWorkersAi: true }, local: { AI: "x" } })).toContain("the names of bindings");
    expect(refusal({ bindings: [{ name: "AI", type: "service" }] })).toContain("would lose them: AI.");
    const taken = '{"workers-ai":{"kind":"simulated"}}';
    expect(refusal({ options: { usesWorkersAi: true }, local: { UPSTREAMS: taken } })).toContain(
      "another of that name",
    );
  });
});

describe("a deployment stops", () => {
  it("before vars of wrangler.toml replace secrets that the file lacks", () => {
    const vars = { DEFAULT_MODEL: "sim/echo", UPSTREAMS: { sim: { kind: "simulated" } } };
    const secrets = ["ADMIN_KEY", "UPSTREAMS", "DEFAULT_MODEL"];
    expect(refusal({ vars, secrets })).toMatch(
      /would replace secrets of the Worker fanout: UPSTREAMS, DEFAULT_MODEL\./,
    );
    expect(
      planned({ vars, secrets, local: { UPSTREAMS: '{"a":{"kind":"simulated"}}', DEFAULT_MODEL: "a/echo" } }).kept,
    ).toEqual(["ADMIN_KEY"]);
  });

  it.each([
    ["MAX_BUDGET_USD", { name: "MAX_BUDGET_USD", type: "plain_text", text: "5" }],
    ["UPSTREAMS", { name: "UPSTREAMS", type: "json", json: { a: { kind: "simulated" } } }],
    ["WORKFLOW", { name: "WORKFLOW", type: "workflow" }],
    ["NEWER", { name: "NEWER", type: "durable_object_namespace", class_name: "NewerObject" }],
    ["FILES", { ...FILES, bucket_name: "other-files" }],
  ])("before a setting of the Worker is lost: %s", (name, binding) => {
    expect(refusal({ bindings: [binding] })).toContain(`a deployment would lose them: ${name}.`);
    expect(plan({ bindings: [binding], options: { drop: [name] } })).toMatchObject({ ok: true });
  });

  it("for no setting that stays, or that is what the code serves anyway", () => {
    const bindings: RemoteBinding[] = [
      FILES,
      { name: "CF_VERSION_METADATA", type: "version_metadata" },
      { name: "DEFAULT_MODEL", type: "plain_text", text: "sim/echo" },
      { name: "UPSTREAMS", type: "json", json: { sim: { kind: "simulated" } } },
    ];
    expect(plan({ bindings })).toMatchObject({ ok: true });
    const set: RemoteBinding[] = [{ name: "PROBE", type: "plain_text", text: "1" }];
    expect(plan({ bindings: set, local: { PROBE: "1" } })).toMatchObject({ ok: true });
    expect(plan({ bindings: set, vars: { PROBE: "1" } })).toMatchObject({ ok: true });
  });

  it("for no variable that wrangler keeps with keep_vars", () => {
    const bindings = [{ name: "PROBE", type: "plain_text", text: "1" }];
    expect(plan({ bindings, config: { ...configOf(), keepsVars: true } })).toMatchObject({ ok: true });
  });

  it("before a variable of the file replaces an object or a bucket of the same name", () => {
    expect(refusal({ local: { RUN: "x" } })).toContain("the names of bindings in wrangler.toml: RUN.");
  });

  it("before it unbinds the bucket, unless it is told to deploy without R2", () => {
    const config = configOf({ buckets: {} });
    expect(refusal({ bindings: [FILES], config, options: { isFree: true } })).toContain("lose them: FILES.");
    expect(plan({ bindings: [FILES], config, options: { hasNoR2: true } })).toMatchObject({ ok: true });
  });

  it("before parts of a variable are merged with parts that only the Worker has", () => {
    const over = {
      secrets: ["ADMIN_KEY", "UPSTREAMS", "UPSTREAMS_2", "ROUTES"],
      local: { UPSTREAMS_1: '{"a":{"kind":"simulated"}}' },
    };
    expect(refusal(over)).toContain("has UPSTREAMS, UPSTREAMS_2, which .deploy.vars lacks");
    const { secrets } = planned({ ...over, options: { drop: ["UPSTREAMS", "UPSTREAMS_2"] } });
    expect(secrets).toMatchObject({ UPSTREAMS: "{}", UPSTREAMS_2: "{}" });
    expect(plan({ ...over, local: {} })).toMatchObject({ ok: true });
  });
});

describe("what Cloudflare or the gateway would refuse", () => {
  it("is a value above 5 KB: the message names the parts", () => {
    const models = (length: number) => JSON.stringify({ sim: { kind: "simulated", models: ["x".repeat(length)] } });
    const frame = models(0).length;
    expect(plan({ local: { SOME: "x".repeat(VARIABLE_BYTES_MAX) } })).toMatchObject({ ok: true });
    expect(refusal({ local: { SOME: "x".repeat(VARIABLE_BYTES_MAX + 1) } })).toBe(
      "SOME in .deploy.vars has 5121 bytes, and a variable on Cloudflare at most 5120. Shorten it.",
    );
    const UPSTREAMS = models(VARIABLE_BYTES_MAX + 1 - frame);
    expect(refusal({ local: { UPSTREAMS } })).toContain("Split it into UPSTREAMS_1, UPSTREAMS_2 …");
    expect(refusal({ vars: { UPSTREAMS: JSON.parse(UPSTREAMS) } })).toContain("UPSTREAMS in wrangler.toml has 5121");
  });

  it.each([
    [true, 64],
    [false, 128],
  ])("is one variable too many, with those that only the Worker has: free plan %s, %d", (isFree, max) => {
    const secrets = ["ADMIN_KEY", "SIGNING_KEY", ...Array.from({ length: max - 3 }, (_, index) => `S_${index}`)];
    expect(plan({ options: { isFree }, secrets, local: { A: "a" } })).toMatchObject({ ok: true });
    expect(refusal({ options: { isFree }, secrets, local: { A: "a", B: "b" } })).toContain(`may have ${max}`);
  });

  it("is found where the Worker's own secrets do not decide it", () => {
    const UPSTREAMS = JSON.stringify({ openai: OPENAI });
    expect(refusal({ local: { UPSTREAMS } })).toContain("reads the secret OPENAI_API_KEY, which is not set");
    expect(plan({ local: { UPSTREAMS }, secrets: ["ADMIN_KEY", "OPENAI_API_KEY"] })).toMatchObject({ ok: true });
    const secrets = ["ADMIN_KEY", "UPSTREAMS", "WEBHOOK_SECRET", "MAX_BUDGET_USD"];
    const ROUTES = '{"fast":["openai/gpt-4o-mini"]}';
    expect(plan({ local: { ROUTES, WEBHOOK_URL: "https://a.example" }, secrets })).toMatchObject({ ok: true });
    expect(refusal({ local: { ROUTES } })).toContain("ROUTES");
    expect(refusal({ local: { PROBE: "7" }, secrets })).toContain("PROBE");
  });

  it("is a key that can be guessed, as far as its value is known", () => {
    expect(refusal({ local: { ADMIN_KEY: "short" } })).toMatch(/^the secret ADMIN_KEY has fewer than 32 characters/);
    expect(refusal({ local: { VIEW_KEY: "short" }, secrets: ["ADMIN_KEY", "SIGNING_KEY"] })).toContain("VIEW_KEY");
    expect(plan({ secrets: ["ADMIN_KEY", "SIGNING_KEY", "SIGNING_KEY_PREVIOUS", "VIEW_KEY"] })).toMatchObject({
      ok: true,
    });
  });

  it("is not a gateway without upstreams: the operator is told that it serves the simulator", () => {
    expect(planned().notes).toEqual([expect.stringMatching(/serves only sim\/echo.*npm run deploy -- --workers-ai/)]);
    expect(planned({ secrets: ["ADMIN_KEY", "UPSTREAMS_1"] }).notes.join()).not.toContain("sim/echo");
  });
});
