/** What a run of a gateway with a jurisdiction may not do: begin outside of it. */
import { expect, it } from "vitest";
import { createApp } from "../../../src/http/app.ts";

const ADMIN_KEY = "operator-key-0123456789-0123456789";

/** A namespace that makes ids and reaches no object. */
const inside = { newUniqueId: () => "0".repeat(64) };

it.each(["wnam", "apac-ne", "me"])("refuses a region outside, and names those inside: %s", async (region) => {
  const init = {
    method: "POST",
    headers: { authorization: `Bearer ${ADMIN_KEY}`, "content-type": "application/json" },
    body: JSON.stringify({ region }),
  };
  const env = { ADMIN_KEY, JURISDICTION: "eu", RUN: { jurisdiction: () => inside } };
  const answer = await createApp().request("/runs", init, env);
  expect(answer.status).toBe(400);
  expect(await answer.json()).toMatchObject({
    error: { code: "invalid_request", param: "region", message: expect.stringContaining("expected weur or eeur") },
  });
});

it("refuses every route where the variable names no jurisdiction, so that nothing is stored elsewhere", async () => {
  const headers = { authorization: `Bearer ${ADMIN_KEY}` };
  const answer = await createApp().request("/runs", { headers }, { ADMIN_KEY, JURISDICTION: "europe" });
  expect(answer.status).toBe(500);
  expect(await answer.json()).toMatchObject({ error: { code: "misconfigured" } });
});
