/** The functions `search` and `math` as tools: a server that computes what it is really sent. */
import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { z } from "zod";
import { valueOf } from "./arithmetic.ts";
import { search } from "./planner.ts";

const call = z.object({ tool_name: z.string(), input: z.record(z.string(), z.unknown()) });
export type RoleToolCall = z.infer<typeof call>;

export type RoleTools = { url: string; calls: RoleToolCall[]; stop: () => Promise<void> };

/** Starts the tools; their address takes `/search` and `/math`. `delayMs`: how long each call takes. */
export async function startTools(port = 0, delayMs = 0): Promise<RoleTools> {
  const calls: RoleToolCall[] = [];
  const server = createServer((request, response) => {
    void text(request).then(async (body) => {
      const sent = call.parse(JSON.parse(body));
      calls.push(sent);
      if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs));
      const { status, result } = resultOf(sent);
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(result));
    });
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the tools have no TCP address");
  const stop = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return { url: `http://127.0.0.1:${address.port}`, calls, stop };
}

function resultOf({ tool_name, input }: RoleToolCall): { status: number; result: unknown } {
  if (tool_name === "search") return { status: 200, result: { result: search(String(input["query"] ?? "")) } };
  const value = valueOf(String(input["expression"] ?? ""));
  return value === null
    ? { status: 400, result: { error: "no expression" } }
    : { status: 200, result: { result: value } };
}
