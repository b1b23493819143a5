import { describe, expect, it } from "vitest";
import { Hono } from "hono";
import { createApp } from "../../../src/http/app.ts";
import { Prepared } from "../../../src/http/discovery/prepared.ts";

const app = createApp();
const env = { ADMIN_KEY: "k".repeat(32), UPSTREAMS: { sim: { kind: "simulated" } } };
const read = (path: string, headers: Record<string, string> = {}) => app.request(path, { headers }, env);

it("is written once for all who wait for it", async () => {
  let written = 0;
  const prepared = new Prepared(function* () {
    for (; written < 8; written += 1) yield;
    return "written";
  });
  const small = new Hono().get("/", (c) => prepared.send(c, {}));
  const answers = await Promise.all(Array.from({ length: 3 }, () => small.request("/")));
  expect(await Promise.all(answers.map((each) => each.text()))).toEqual(Array(3).fill("written"));
  expect([written, new Set(answers.map((each) => each.headers.get("etag"))).size]).toEqual([8, 1]);
});

describe.each(["/docs", "/openapi.json", "/llms.txt"])("%s", (path) => {
  it("is not sent again to a client that has it", async () => {
    const first = await read(path);
    const etag = first.headers.get("etag") ?? "";
    expect([first.status, (await first.text()).length > 10_000]).toEqual([200, true]);
    for (const known of [etag, `W/${etag}`, `"other", ${etag}`, "*"]) {
      const again = await read(path, { "if-none-match": known });
      expect([again.status, await again.text(), again.headers.get("etag")]).toEqual([304, "", etag]);
    }
  });

  it("is sent to one that has another", async () => {
    expect((await read(path, { "if-none-match": '"other"' })).status).toBe(200);
    expect((await read(path, { "if-none-match": `${",".repeat(100_000)}*` })).status).toBe(200);
  });
});
