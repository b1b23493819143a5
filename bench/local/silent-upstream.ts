/** An upstream that answers no call and records when each arrives and when its caller closes it. */
import { createServer, type Server } from "node:http";

export type SilentUpstream = AsyncDisposable & {
  url: string;
  /** Resolves when the call whose prompt contains `name` has arrived. */
  arrived: (name: string) => Promise<void>;
  /** Resolves with `performance.now()` at which the caller closed that call. */
  closed: (name: string) => Promise<number>;
};

type Call = { arrived: PromiseWithResolvers<void>; closed: PromiseWithResolvers<number> };

export async function startSilentUpstream(): Promise<SilentUpstream> {
  const calls = new Map<string, Call>();
  const callOf = (name: string): Call => {
    const known = calls.get(name) ?? { arrived: Promise.withResolvers(), closed: Promise.withResolvers() };
    calls.set(name, known);
    return known;
  };
  const server: Server = createServer((request, reply) => {
    let body = "";
    request.setEncoding("utf8").on("data", (piece: string) => (body += piece));
    request.on("end", () => {
      const call = callOf(/client-\d+/.exec(body)?.[0] ?? "");
      call.arrived.resolve();
      reply.once("close", () => call.closed.resolve(performance.now()));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}`,
    arrived: (name) => callOf(name).arrived.promise,
    closed: (name) => callOf(name).closed.promise,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
