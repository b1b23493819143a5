/** How a server that the bench starts as a process of its own begins and ends. */
import type { Server } from "node:http";

/** Connections that idle between two rounds stay open: a reset one would be measured as the gateway's failure. */
const KEEP_ALIVE_MS = 300_000;
/** Connections that may wait to be accepted: a bench opens more at once than Node's default takes. */
const BACKLOG = 2_048;

/** Listens on a port of this machine, 0 = any free one, and tells the parent which. Ends with the parent. */
export function listenForParent(server: Server, port = 0): void {
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  server.listen(port, "127.0.0.1", BACKLOG, () => {
    const address = server.address();
    if (address !== null && typeof address === "object") process.stdout.write(`${address.port}\n`);
  });
  // The parent's end of stdin closes with the parent, however it dies.
  process.stdin.resume();
  process.stdin.on("end", () => process.exit(0));
}
