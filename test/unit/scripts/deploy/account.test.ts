import { describe, expect, it } from "vitest";
import { readAccount, type ApiAnswer } from "../../../../scripts/deploy/account.ts";
import { configOf } from "./samples.ts";

const ok = (result: unknown): ApiAnswer => ({ ok: true, result });
const refused = (status: number, code: number): ApiAnswer => ({ ok: false, status, code, message: "no" });

/** What the API answers for an account that can take the gateway; `over` replaces answers, by the end of their path. */
async function read(over: Record<string, ApiAnswer> = {}, accountId: string | null = null, config = configOf()) {
  const answers: Record<string, ApiAnswer> = {
    "/accounts?per_page=50": ok([{ id: "a1", name: "Somebody" }]),
    "/settings": refused(404, 10007),
    "/secrets": ok([]),
    "/subdomain": ok({ subdomain: "somebody" }),
    "/fanout-files": ok({ name: "fanout-files" }),
    ...over,
  };
  const paths: string[] = [];
  const found = await readAccount(config, {
    accountId,
    async read(path, headers = {}) {
      paths.push([path, ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`)].join(" "));
      const answer = Object.entries(answers).find(([end]) => path.endsWith(end))?.[1];
      if (answer === undefined) throw new Error(path);
      return answer;
    },
  });
  return { found, paths };
}

const messageOf = async (over: Record<string, ApiAnswer>) => {
  const { found } = await read(over);
  return found.ok ? null : found.message;
};

const OURS = ok({
  bindings: [
    { name: "RUN", type: "durable_object_namespace", class_name: "RunObject" },
    { name: "ADMIN_KEY", type: "secret_text" },
  ],
});

describe("readAccount", () => {
  it("finds an account without a Worker, in the account of the login", async () => {
    const { found, paths } = await read();
    expect(found).toEqual({ ok: true, account: { id: "a1", worker: null, missingBuckets: [], jurisdiction: null } });
    expect(paths).toEqual([
      "/accounts?per_page=50",
      "/accounts/a1/workers/scripts/fanout/settings",
      "/accounts/a1/workers/subdomain",
      "/accounts/a1/r2/buckets/fanout-files",
    ]);
  });

  describe("with a jurisdiction", () => {
    const inEurope = configOf({ jurisdiction: "eu" });
    const gateway = (secrets: string[], jurisdiction?: string) => ({
      "/settings": ok({
        bindings: [
          { name: "RUN", type: "durable_object_namespace", class_name: "RunObject" },
          { name: "FILES", type: "r2_bucket", bucket_name: "fanout-files", jurisdiction },
        ],
      }),
      "/secrets": ok(secrets.map((name) => ({ name }))),
    });

    it("looks for the bucket there, also where only the Worker names it", async () => {
      for (const [over, config] of [
        [{}, inEurope],
        [gateway(["JURISDICTION"], "eu"), configOf()],
        [gateway(["JURISDICTION"], "eu"), inEurope],
      ] as const) {
        const { found, paths } = await read(over, null, config);
        expect(found).toMatchObject({ ok: true, account: { jurisdiction: "eu" } });
        expect(paths.at(-1)).toBe("/accounts/a1/r2/buckets/fanout-files cf-r2-jurisdiction: eu");
      }
    });

    it.each([
      ["a gateway that has none", gateway(["ADMIN_KEY"])],
      ["a gateway of another one", gateway(["JURISDICTION"], "us")],
      ["a gateway whose bucket is anywhere", gateway(["JURISDICTION"])],
    ])("moves nothing into it: %s", async (_, over) => {
      const { found } = await read(over, null, inEurope);
      expect(found).toMatchObject({ ok: false, message: expect.stringContaining("data cannot move") });
    });
  });

  it("needs no list of accounts if one is named", async () => {
    const { found, paths } = await read({ "/accounts?per_page=50": refused(403, 10000) }, "a2");
    expect(found).toMatchObject({ ok: true, account: { id: "a2" } });
    expect(paths[0]).toBe("/accounts/a2/workers/scripts/fanout/settings");
  });

  it("reads the names of secrets apart from the other bindings, and the missing buckets", async () => {
    const { found } = await read({
      "/settings": OURS,
      "/secrets": ok([{ name: "UP" }]),
      "/fanout-files": refused(404, 10006),
    });
    expect(found).toMatchObject({
      ok: true,
      account: {
        worker: { secrets: ["UP", "ADMIN_KEY"], bindings: [{ name: "RUN" }] },
        missingBuckets: ["fanout-files"],
      },
    });
  });

  it.each([
    ["no account", { "/accounts?per_page=50": ok([]) }, "has no account"],
    [
      "several accounts",
      {
        "/accounts?per_page=50": ok([
          { id: "a", name: "A" },
          { id: "b", name: "B" },
        ]),
      },
      "a (A), b (B)",
    ],
    ["a Worker that is another program", { "/settings": ok({ bindings: [] }) }, "not this gateway"],
    [
      "a Worker that has another thing named RUN",
      { "/settings": ok({ bindings: [{ name: "RUN", type: "r2_bucket" }] }) },
      "not this gateway",
    ],
    ["no subdomain", { "/subdomain": refused(404, 10007) }, "https://dash.cloudflare.com/a1/workers/onboarding"],
    ["R2 off", { "/fanout-files": refused(403, 10042) }, "--without-r2"],
    [
      "a token that may not read accounts",
      { "/accounts?per_page=50": refused(403, 10000) },
      '"Account Settings: Read"',
    ],
    ["a token that may not read Workers", { "/settings": refused(403, 10000) }, '"Workers Scripts: Edit"'],
    [
      "a token that may not read secrets",
      { "/settings": OURS, "/secrets": refused(403, 10000) },
      '"Workers Scripts: Edit"',
    ],
    ["a token that may not read buckets", { "/fanout-files": refused(403, 10000) }, '"Workers R2 Storage: Edit"'],
    [
      "an account that does not exist",
      { "/settings": refused(404, 7003) },
      "could not read Workers: no (status 404, code 7003)",
    ],
    [
      "an API that is down",
      { "/settings": refused(503, 0) },
      "could not read Workers: no (status 503, code 0). Try again later.",
    ],
  ])("names what stands in the way: %s", async (_, over, sentence) => {
    expect(await messageOf(over)).toContain(sentence);
  });

  it("needs no subdomain where the gateway has routes, and no R2 without buckets", async () => {
    const config = { ...configOf({ buckets: {} }), usesWorkersDev: false };
    const { found, paths } = await read({}, "a1", config);
    expect([found.ok, paths]).toEqual([true, ["/accounts/a1/workers/scripts/fanout/settings"]]);
  });
});
