/** The TCP splice in front of a local workerd, with plain TCP servers on both sides. */
import { connect, createServer, type Server, type Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { startSplice, type Splice } from "../../../scripts/local/splice.ts";

/** A server that remembers how each of its connections ended. */
class Target {
  readonly sockets: Socket[] = [];
  readonly ends: string[] = [];
  readonly server: Server = createServer({ allowHalfOpen: true }, (socket) => {
    this.sockets.push(socket);
    socket.on("end", () => this.ends.push("closed"));
    socket.on("error", (error: NodeJS.ErrnoException) => this.ends.push(error.code ?? error.message));
    socket.resume();
  });

  listen(): Promise<number> {
    return new Promise((resolve) => {
      this.server.listen(0, "127.0.0.1", () => {
        const address = this.server.address();
        resolve(typeof address === "object" && address !== null ? address.port : 0);
      });
    });
  }
}

const HOST = "127.0.0.1";
let target: Target;
let splice: Splice;
afterEach(async () => {
  await splice.close();
  target.server.close();
  for (const socket of target.sockets) socket.destroy();
});

async function start(): Promise<void> {
  target = new Target();
  const port = await target.listen();
  splice = await startSplice({ host: HOST, port: 0 }, () => ({ host: HOST, port }));
}

async function client(): Promise<Socket> {
  const connections = target.sockets.length;
  const socket = connect({ host: HOST, port: splice.port, allowHalfOpen: true });
  socket.on("error", () => undefined);
  await expect.poll(() => target.sockets.length).toBe(connections + 1);
  return socket;
}

describe("the splice", () => {
  it.each([
    ["closes its sending side", (socket: Socket) => void socket.end()],
    ["closes its connection", (socket: Socket) => void socket.destroy()],
    ["resets its connection", (socket: Socket) => void socket.resetAndDestroy()],
  ])("resets the target's connection when a client %s", async (_, leave) => {
    await start();
    leave(await client());
    await expect.poll(() => target.ends).toEqual(["ECONNRESET"]);
  });

  it("relays bytes both ways, and hands on the target's close after its last byte", async () => {
    await start();
    const socket = await client();
    let received = "";
    let closed = false;
    socket.setEncoding("utf8").on("data", (piece: string) => (received += piece));
    socket.on("end", () => (closed = true));
    const [server] = target.sockets;
    server?.on("data", (bytes) => server.end(`got ${bytes.toString()}`));
    socket.write("question");
    await expect.poll(() => [received, closed]).toEqual(["got question", true]);
  });

  it("resets a client whose target has died, so that a cut answer does not look whole", async () => {
    await start();
    const socket = await client();
    let code = "";
    socket.on("error", (error: NodeJS.ErrnoException) => (code = error.code ?? ""));
    socket.resume();
    target.sockets[0]?.resetAndDestroy();
    await expect.poll(() => code).toBe("ECONNRESET");
  });

  it("resets a client when nothing listens at the target", async () => {
    await start();
    target.server.close();
    let code = "";
    const socket = connect({ host: HOST, port: splice.port });
    socket.on("error", (error: NodeJS.ErrnoException) => (code = error.code ?? ""));
    await expect.poll(() => code).toBe("ECONNRESET");
  });

  it("closes a client that does not read what is still being sent to it", async () => {
    await start();
    const socket = await client();
    socket.pause();
    target.sockets[0]?.end(new Uint8Array(16 * 1024 * 1024));
    await expect.poll(() => socket.readableLength).toBeGreaterThan(0);
    await splice.close();
    let ended = false;
    socket.on("close", () => (ended = true));
    socket.resume();
    socket.end();
    await expect.poll(() => ended).toBe(true);
  });

  it("closes with connections open", async () => {
    await start();
    const socket = await client();
    let ended = false;
    socket.on("close", () => (ended = true));
    await splice.close();
    await expect.poll(() => ended).toBe(true);
  });
});
