/** `GET /llms.txt`, followed to the letter by somebody who knows nothing else. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { z } from "zod";
import { startGateway, type Gateway } from "../support/gateway.ts";

let gateway: Gateway;
beforeAll(async () => void (gateway = await startGateway()));
afterAll(() => gateway.stop());

const query = z.object({ text: z.string() });
const batch = z.object({ results: z.array(z.string()), errors: z.array(z.null()) });

it("has commands that work with the two variables it names", { tags: ["slow"] }, async () => {
  const reply = await fetch(`${gateway.url}/llms.txt`);
  expect(reply.headers.get("content-type")).toBe("text/plain; charset=utf-8");
  const page = await reply.text();
  const commands = [...page.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, command = ""]) => command);
  expect(commands).toHaveLength(2);
  const { token } = await gateway.openRun();
  const env = { PATH: process.env["PATH"], FANOUT_URL: gateway.url, FANOUT_TOKEN: token };
  const printed: unknown[] = [];
  for (const command of commands) {
    const { stdout } = await promisify(execFile)("sh", ["-c", command], { env });
    printed.push(JSON.parse(stdout));
  }
  expect(query.parse(printed[0])).toEqual({ text: "Say it again." });
  expect(batch.parse(printed[1])).toEqual({ results: ["one", "two", "three"], errors: [null, null, null] });
});

it("tells the truth about failed calls, spent budgets and repeated requests", async () => {
  const { token } = await gateway.openRun({ budget: { calls: 2 } });
  const send = async (json: unknown, key: string) => {
    const headers = { "idempotency-key": key };
    return await (await gateway.fetch("/batch", { method: "POST", json, token, headers })).json();
  };
  const failed = z.object({
    results: z.array(z.string()),
    errors: z.array(z.looseObject({ code: z.string() }).nullable()),
  });
  const items = [{ prompt: "one" }, { prompt: "two", model: "sim/fail?status=400" }];
  const first = await send({ items }, "first");
  const { results, errors } = failed.parse(first);
  expect([results[0], errors[0]]).toEqual(["one", null]);
  expect(results[1]).toMatch(/^\[error\] /);
  expect(failed.parse(await send({ items }, "first"))).toEqual({ results, errors });
  const spent = failed.parse(await send({ prompts: ["three"] }, "second"));
  expect(spent.errors[0]).toMatchObject({ code: "budget_exhausted", retryable: false });
});
