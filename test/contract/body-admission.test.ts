/** Large bodies that arrive at once: as many as the isolate's memory has room for; the others are told to come later. */
import { request, type ClientRequest } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { BODIES_FULL_RETRY_AFTER_MS, BODY_BYTES_MAX } from "../../src/limits.ts";
import { errorOf, startWorld, type Answer, type RunAccess, type World } from "./world.ts";

let world: World;
let run: RunAccess;

beforeAll(async () => {
  world = await startWorld();
  run = await world.openRun();
});
afterAll(() => world.stop());

const JSON_TYPE = { "content-type": "application/json" };

/** Begins to send a body of the largest size, and sends the first of its bytes only. */
async function beginBody(): Promise<ClientRequest> {
  const headers = { ...JSON_TYPE, authorization: `Bearer ${run.token}`, "content-length": String(BODY_BYTES_MAX) };
  const begun = request(`${world.gateway.url}/batch`, { method: "POST", agent: false, headers });
  begun.on("error", () => undefined);
  await new Promise((resolve) => begun.write(" ".repeat(64 * 1024), resolve));
  return begun;
}

/** Sends white space: where there is room for the body, it is read and refused as empty. */
const sendBlank = (bytes: number, announced = true): Promise<Answer> => {
  const blank = new Uint8Array(bytes).fill(0x20);
  const body = announced ? blank : new Blob([blank]).stream();
  return run.send("/batch", { method: "POST", headers: JSON_TYPE, body, duplex: "half" });
};
const READ = 400;
const REFUSED = 503;

describe("while a body of the largest size is being read", () => {
  it("others are refused with a wait, small ones are not, and its end makes room", { tags: ["slow"] }, async () => {
    const begun = await beginBody();
    await expect.poll(async () => (await sendBlank(BODY_BYTES_MAX)).status).toBe(REFUSED);

    const refused = await Promise.all([1, 2, 3].map(() => sendBlank(BODY_BYTES_MAX)));
    for (const answer of refused) {
      expect(answer.status).toBe(REFUSED);
      expect(errorOf(answer)).toMatchObject({ code: "overloaded", retryable: true });
      const waitMs = Number(answer.headers.get("retry-after-ms"));
      expect(waitMs).toBeGreaterThanOrEqual(BODIES_FULL_RETRY_AFTER_MS);
      expect(waitMs).toBeLessThan(2 * BODIES_FULL_RETRY_AFTER_MS);
    }
    // Its length is not known before it is read.
    expect((await sendBlank(BODY_BYTES_MAX, false)).status).toBe(REFUSED);
    // Half a body fits beside it, and a call always does.
    expect((await sendBlank(BODY_BYTES_MAX / 2)).status).toBe(READ);
    const query = await run.send("/query", { method: "POST", json: { prompt: "hello", model: "sim/echo" } });
    expect(query.json).toMatchObject({ text: "hello" });

    begun.socket?.resetAndDestroy();
    await expect.poll(async () => (await sendBlank(BODY_BYTES_MAX)).status).toBe(READ);
    // Each was let go when it was answered: another one fits.
    expect((await sendBlank(BODY_BYTES_MAX)).status).toBe(READ);
  });
});
