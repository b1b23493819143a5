/** Tools of a run, called by the clients of other systems: rlm-sandbox's `_tool_call`, verifiers' tools beside `llm_batch`. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { verifiersTool } from "../support/dialect-clients.ts";
import { postExactly, pythonJson } from "../support/python-http.ts";
import { startToolServer, type ToolServer } from "../support/tool-server.ts";
import { documentOf, startWorld, type RunAccess, type World } from "./world.ts";

let tools: ToolServer;
let world: World;
let run: RunAccess;
beforeAll(async () => {
  tools = await startToolServer();
  world = await startWorld(undefined, { TOOL_HOSTS: tools.host });
});
beforeEach(async () => {
  tools.forget();
  const tool = (name: string, path: string) => ({ name, url: `http://${tools.host}${path}` });
  run = await world.openRun({ tools: [tool("search_knowledge", "/echo"), tool("broken", "/500")] });
});
afterAll(async () => {
  tools.release();
  await world.stop();
  await tools.stop();
});

const sentInputs = () => tools.requests.map(({ body }) => JSON.parse(body).input);

describe("verifiers", () => {
  const tool = (name: string) => verifiersTool(`${world.gateway.url}/rollout/${run.id}/v1/rlm/tools`, run.token, name);

  it("gets the result of a tool of the run, with arguments by name and by position", async () => {
    const search = tool("search_knowledge");
    expect(await search([], { query: "naïve 🦉", top_k: 3 })).toEqual({ query: "naïve 🦉", top_k: 3 });
    expect(await search(["naïve 🦉"], { top_k: 3 })).toEqual({ top_k: 3, args: ["naïve 🦉"] });
    expect(await search([])).toEqual({});
    expect(sentInputs()).toEqual([{ query: "naïve 🦉", top_k: 3 }, { top_k: 3, args: ["naïve 🦉"] }, {}]);
    expect((await documentOf(run)).stats.total_queries).toBe(0);
  });

  it("raises a tool's error, and an error for an unknown tool", async () => {
    await expect(tool("broken")([])).rejects.toThrow(/^5\d\d: \{"error":".*500/);
    await expect(tool("absent")([])).rejects.toThrow(`404: {"error":"Tool 'absent' not found"}`);
    expect(tools.requests.map(({ path }) => path)).toEqual(["/500"]);
  });
});

describe("rlm-sandbox", () => {
  const call = (name: string, input: object, rollout = run.token) => {
    const headers = { "content-type": "application/json", "user-agent": "Python-urllib/3.11", connection: "close" };
    const body = pythonJson({ tool_name: name, input });
    return postExactly(`${world.gateway.url}/rollout/${rollout}/tool_call`, headers, body);
  };

  it("gets the result of a tool, configured with nothing but a URL", async () => {
    const answer = await call("search_knowledge", { query: "q", top_k: 10 });
    expect([answer.status, answer.json]).toEqual([200, { result: { query: "q", top_k: 10 } }]);
    expect(sentInputs()).toEqual([{ query: "q", top_k: 10 }]);
    expect(JSON.stringify(tools.requests)).not.toContain(run.token);
  });

  it("gets refusals with statuses that it handles, as text", async () => {
    const text = { error: expect.stringMatching(/./) };
    expect(await call("absent", {})).toMatchObject({ status: 404, json: text });
    expect(await call("", {})).toMatchObject({ status: 400, json: text });
    expect(await call("broken", {})).toMatchObject({ status: 500, json: text });
    expect(await call("search_knowledge", {}, `${run.token.slice(0, -3)}AAA`)).toMatchObject({
      status: 401,
      json: text,
    });
  });
});
