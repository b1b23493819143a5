import { describe, expect, it } from "vitest";
import { SERVING_MS_MAX, servingTrouble, type Serving } from "../../../../scripts/deploy/serving.ts";

type Reply = { status: number; text: string } | null;
const json = (status: number, body: unknown): Reply => ({ status, text: JSON.stringify(body) });
const health = (deployment: string) => json(200, { status: "ok", deployment, warnings: [] });

/** A gateway that answers by the virtual time since the deployment; it never waits really. */
async function trouble(answer: (path: string, ms: number) => Reply, over: Partial<Serving> = {}) {
  let ms = 0;
  const message = await servingTrouble(
    { url: "https://a.workers.dev", adminKey: "k", versionId: "v2", ...over },
    {
      async get(url, headers) {
        const path = new URL(url).pathname;
        if (path === "/runs" && over.adminKey !== null) expect(headers).toEqual({ authorization: "Bearer k" });
        return answer(path, ms);
      },
      now: () => ms,
      async sleep(more) {
        ms += more;
      },
    },
  );
  return { message, ms };
}

describe("waiting for a deployed gateway", () => {
  it("ends once the deployed version takes the operator's key", async () => {
    const served = await trouble((path) => (path === "/health" ? health("v2") : json(200, {})));
    expect(served).toEqual({ message: null, ms: 0 });
  });

  it("tries again for three minutes: while there is no address, an error page, the version before, a refused key", async () => {
    const stages: [number, (path: string) => Reply][] = [
      [170_000, (path) => (path === "/health" ? health("v2") : json(200, {}))],
      [120_000, (path) => (path === "/health" ? health("v2") : json(401, {}))],
      [80_000, (path) => (path === "/health" ? health("v1") : json(500, { error: { code: "misconfigured" } }))],
      [40_000, () => ({ status: 404, text: "<h1>There is nothing here yet</h1>" })],
      [0, () => null],
    ];
    const served = await trouble((path, ms) => stages.find(([from]) => ms >= from)?.[1](path) ?? null);
    expect(served).toEqual({ message: null, ms: 170_000 });
  });

  it("gives up after them, and says what the last try found", async () => {
    expect(await trouble(() => null)).toEqual({
      message: "https://a.workers.dev does not respond",
      ms: SERVING_MS_MAX,
    });
    const other = await trouble((path) => (path === "/health" ? health("v1") : json(200, {})));
    expect(other).toEqual({ message: null, ms: SERVING_MS_MAX });
    const refused = await trouble((path) =>
      path === "/health" ? health("v2") : json(401, { error: { message: "no" } }),
    );
    expect(refused.message).toBe("no");
  });

  it("ends at once if the deployed version refuses its configuration", async () => {
    const wrong = { error: { message: "UPSTREAMS is not JSON", code: "misconfigured" } };
    const found = await trouble((path) => (path === "/health" ? health("v2") : json(500, wrong)));
    expect(found).toEqual({ message: "UPSTREAMS is not JSON", ms: 0 });
  });

  it("asks as a stranger where the key is not known: a missing key is then the only fault", async () => {
    const as = (status: number) =>
      trouble((path) => (path === "/health" ? health("v2") : json(status, { error: { message: "m" } })), {
        adminKey: null,
      });
    expect(await as(401)).toEqual({ message: null, ms: 0 });
    expect((await as(503)).message).toBe("m");
  });

  it("takes any version where wrangler named none", async () => {
    const served = await trouble((path) => (path === "/health" ? health("v9") : json(200, {})), { versionId: null });
    expect(served.message).toBeNull();
  });
});
