/** What clients do in a recording: every way in that plain workerd has, one request after another. */
import { z } from "zod";
import type { Gateway, GatewayRequest } from "../gateway.ts";

const withId = z.looseObject({ id: z.string() });

/** Makes the requests; throws if one of them fails. */
export async function playSession(gateway: Gateway): Promise<void> {
  const operator = { token: gateway.adminKey };
  const send = async (path: string, request: GatewayRequest, expected = 200): Promise<string> => {
    const answer = await gateway.fetch(path, request);
    const text = await answer.text();
    if (answer.status !== expected) throw new Error(`${path} answered ${answer.status}: ${text}`);
    return text;
  };
  const idIn = (text: string): string => withId.parse(JSON.parse(text)).id;
  const run = await gateway.openRun({
    name: "recorded",
    budget: { usd: 1, calls: 500 },
    max_parallel: 4,
    window_ms: 0,
  });
  const { token } = run;
  const post = (path: string, json: unknown, headers: Record<string, string> = {}, status = 200): Promise<string> =>
    send(path, { token, json, headers }, status);
  const get = (path: string): Promise<string> => send(path, { token });

  await post("/query", { prompt: "one" });
  await post("/query", { prompt: "again", model: "sim/fail?status=503&times=1" });
  await post("/query", { prompt: "stored" }, { "idempotency-key": "k-1" });
  await post("/v1/chat/completions", { model: "sim/echo", messages: [{ role: "user", content: "chat" }] });
  await post("/v1/chat/completions", {
    model: "sim/echo",
    stream: true,
    messages: [{ role: "user", content: "streamed" }],
  });
  await post("/batch", { prompts: ["a", "b", "c"] });
  await post("/batch", { prompts: ["g", "h"] }, { accept: "application/x-ndjson" });
  // Enough calls for the instance to hold credit, which it reports before the budget is read.
  for (let at = 0; at < 8; at += 1) await post("/query", { prompt: `call ${at}` });
  await get("/budget");
  await post("/batch?quote=1", { prompts: ["a", "b"] });
  const group = idIn(await post("/batch", { prompts: ["d", "e"] }, { prefer: "respond-async" }, 202));
  await send(`/groups/${group}?wait_ms=10000`, { token });
  await get(`/groups/${group}/results`);
  const left = idIn(
    await post("/batch", { prompts: ["f"], model: "sim/slow?ms=600000" }, { prefer: "respond-async" }, 202),
  );
  await send(`/groups/${left}`, { token, method: "DELETE" });
  const child = withId.parse(JSON.parse(await post("/runs", { budget: { usd: 0.1 } }, {}, 201)));
  await get(`/runs/${child.id}`);
  await send(`/runs/${child.id}/close`, { token, method: "POST" });
  await get(`/runs/${run.id}?subtree=1`);
  await get("/run");
  await get("/budget");
  await get("/usage?reset=1");
  await get(`/runs/${run.id}/log`);
  await post(`/runs/${run.id}/log`, { event_type: "mine" }, {}, 201);
  await send(`/runs/${run.id}/flush`, { token, method: "POST" });
  await send(`/runs/${run.id}/stats/reset`, { token, method: "POST" });
  await send(`/runs/${run.id}`, { ...operator, method: "PATCH", json: { budget: { usd: 2 }, max_parallel: 6 } });
  await send("/runs?limit=5", operator);
  await send(`/runs/${run.id}`, { ...operator, method: "DELETE" });
}
