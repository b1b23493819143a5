/** What all commands that talk to the gateway share: the credential stays with the server that was named, and a failure says what to do. */
import { createServer, type Server } from "node:http";
import { afterEach, describe, expect, it } from "vitest";
import { ask, json, ownRunId, request, type Gateway } from "../../../cli/gateway/requests.ts";

const credential = { value: "token", name: "FANOUT_TOKEN", from: "FANOUT_TOKEN", isRunToken: true } as const;

const servers: Server[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await new Promise((resolve) => server.close(resolve));
});

/** A gateway that answers every request so; `seen`: the requests. */
async function answering(status: number, body: unknown, headers: Record<string, string> = {}) {
  const seen: { line: string; authorization: string | undefined }[] = [];
  const server = createServer(({ method, url, headers: { authorization } }, reply) => {
    seen.push({ line: `${method} ${url}`, authorization });
    reply.writeHead(status, { "content-type": "application/json", connection: "close", ...headers });
    reply.end(JSON.stringify(body));
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  const gateway: Gateway = { url: `http://127.0.0.1:${address.port}`, credential };
  return { gateway, seen };
}

describe("a request of a command", () => {
  it("has the credential, and is not repeated to a server that the gateway names", async () => {
    const other = await answering(200, {});
    const { gateway, seen } = await answering(302, {}, { location: `${other.gateway.url}/run` });
    const { ok } = await ask(gateway, "/run?view=summary", {});
    expect([ok, seen, other.seen]).toEqual([
      false,
      [{ line: "GET /run?view=summary", authorization: "Bearer token" }],
      [],
    ]);
    await expect(request(gateway, "/run?view=summary")).rejects.toThrow(/^GET \/run returned 302 \(\{\}\)\.$/);
  });

  it.each([
    [401, "expired", /^The gateway does not accept the credential from FANOUT_TOKEN \(expired\)\. Set FANOUT_TOKEN/],
    [404, "no such\u001b[31m tape", /^POST \/tapes returned 404 \(no such tape\)\.$/],
    [503, "busy", /^POST \/tapes returned 503 \(busy\)\.$/],
  ])("that is answered with %i fails with what to do", async (status, message, said) => {
    const { gateway } = await answering(status, { error: { message } });
    await expect(request(gateway, "/tapes", { json: {} })).rejects.toThrow(said);
    const answer = await ask(gateway, "/tapes", { json: {} });
    expect(answer).toMatchObject({ ok: false, problem: { status, isTransient: status === 503 } });
  });

  it("that its user stops fails with that, and not with a message about the connection", async () => {
    const { gateway } = await answering(200, {});
    const signal = AbortSignal.abort(new Error("stopped"));
    await expect(request(gateway, "/run", { signal })).rejects.toThrow(/^stopped$/);
  });

  it("for the run of a token fails where the answer names none", async () => {
    expect(await ownRunId((await answering(200, { id: "run_1" })).gateway)).toBe("run_1");
    await expect(ownRunId((await answering(200, {})).gateway)).rejects.toThrow(/\/run has no run id\.$/);
    await expect(json((await answering(201, 17)).gateway, "/run")).rejects.toThrow(/is it a fanout gateway\?$/);
  });
});
