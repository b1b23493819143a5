/** A port for a server that another process starts later, such as a program that is to receive a webhook. */
import { createServer } from "node:net";
import { randomInt } from "node:crypto";

/** Below the ports that systems give to connections and to servers that name none: nobody else takes it meanwhile. */
const FIRST = 20_000;
const AFTER_LAST = 30_000;

export async function unusedPort(): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST, AFTER_LAST);
    if (await isFree(port)) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}
