/**
 * Relays TCP connections to workerd, and turns a client's close into a reset on workerd's side. A client that gives up closes
 * its connection (FIN). workerd treats that as a client that has sent everything and still waits for the response, so the call
 * would continue. A reset is reported as a disconnect.
 */
import { createServer, connect, type Server, type Socket } from "node:net";
import { Exchange } from "./exchange.ts";

export type Splice = {
  port: number;
  /** Connections with a request under way. */
  busy(): number;
  /** Takes no new connections, closes idle ones, and waits up to `timeoutMs` until the requests under way are answered. */
  drain(timeoutMs: number): Promise<void>;
  /** Closes the listener and every connection. */
  close(): Promise<void>;
};

/** A client's connection and its request. */
type Relayed = { client: Socket; exchange: Exchange };

/**
 * Listens on `host` and `port` (0: a free port) and relays to workerd at `target`. Rejects with the system's error if it cannot
 * listen. A client that closes only its sending side also counts as disconnected: no HTTP client in use does that and waits.
 */
export async function startSplice(
  listen: { host: string; port: number },
  target: () => { host: string; port: number },
): Promise<Splice> {
  const open = new Set<Socket>();
  const relays = new Set<Relayed>();
  let draining = false;
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    const relayed = { client, exchange: new Exchange() };
    relays.add(relayed);
    client.once("close", () => relays.delete(relayed));
    relay(relayed, target(), {
      open,
      answered: () => draining && !relayed.exchange.isUnderWay && client.destroySoon(),
    });
  });
  await listening(server, listen);
  const address = server.address();
  const closeListener = (): Promise<void> => new Promise((resolve) => server.close(() => resolve()));
  return {
    port: typeof address === "object" && address !== null ? address.port : listen.port,
    busy: () => [...relays].filter(({ exchange }) => exchange.isUnderWay).length,
    drain: async (timeoutMs) => {
      draining = true;
      const closed = closeListener();
      for (const { client, exchange } of relays) if (!exchange.isUnderWay) client.destroySoon();
      const timeout = Promise.withResolvers<void>();
      const timer = setTimeout(timeout.resolve, timeoutMs);
      await Promise.race([closed, timeout.promise]);
      clearTimeout(timer);
    },
    close: async () => {
      const closed = closeListener();
      for (const socket of open) reset(socket);
      await closed;
    },
  };
}

type RelayDeps = {
  open: Set<Socket>;
  /** Called after each piece of an answer. */
  answered: () => void;
};

function relay(
  { client, exchange }: Relayed,
  target: { host: string; port: number },
  { open, answered }: RelayDeps,
): void {
  const server = connect({ ...target, noDelay: true });
  for (const socket of [client, server]) {
    open.add(socket);
    socket.once("close", () => open.delete(socket));
  }
  client.on("data", () => exchange.clientSent());
  client.pipe(server, { end: false });
  server.pipe(client);
  server.on("data", (piece: Buffer) => {
    exchange.serverSent(piece);
    answered();
  });
  const leave = (): void => reset(server);
  client.once("end", leave);
  client.once("error", leave);
  client.once("close", leave);
  // Bytes that workerd has sent are flushed first. Otherwise a disconnected client would keep its half of the connection.
  server.once("close", () => client.destroySoon());
  // workerd is restarting, or has died in the middle of a response: the client must not treat that as the end of the response.
  server.once("error", () => reset(client));
}

/** Resets a socket. A socket whose end is being sent is destroyed instead: Node would ignore the reset and leave it open. */
function reset(socket: Socket): void {
  if (socket.writableEnded) socket.destroy();
  else socket.resetAndDestroy();
}

function listening(server: Server, listen: { host: string; port: number }): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(listen.port, listen.host, () => {
      server.off("error", reject);
      resolve();
    });
  });
}
