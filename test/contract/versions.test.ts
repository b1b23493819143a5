/** During a deploy: a new Worker calls objects that do not have a method yet. */
import { expect, it } from "vitest";
import { bundled, startGateway } from "../support/gateway.ts";

/** The bindings of a version whose objects have none of the methods that the gateway calls. */
const BARE_TOML = `compatibility_date = "2026-11-01"
compatibility_flags = ["enable_request_signal"]
{ name = "RUN", class_name = "RunObject" }
{ name = "DIRECTORY", class_name = "DirectoryObject" }
`;

it.each([
  ["GET", "/runs", undefined],
  ["GET", "/runs/run_1", undefined],
  ["POST", "/runs", {}],
])(
  "%s %s is 503 with a wait while its objects are of another version, and says so",
  { tags: ["slow"] },
  async (method, path, json) => {
    const script = await bundled("test/support/fixtures/counting-worker.ts");
    const gateway = await startGateway({ objects: { script, wranglerToml: BARE_TOML } });
    try {
      const answer = await gateway.fetch(path, {
        method,
        token: gateway.adminKey,
        ...(json === undefined ? {} : { json }),
      });
      expect(await answer.json()).toMatchObject({
        error: { code: "overloaded", message: expect.stringContaining("another version"), retryable: true },
      });
      expect(answer.status).toBe(503);
      expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
    } finally {
      await gateway.stop();
    }
  },
);
