import { createServer } from "node:net";

/** Listens on a port for a moment; returns the port (0 requests a free one) or the system's error code. */
export function tryPort(port: number, host: string): Promise<{ port: number } | { refused: string }> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", (error: NodeJS.ErrnoException) => resolve({ refused: error.code ?? error.message }));
    server.listen(port, host, () => {
      const address = server.address();
      const taken = typeof address === "object" && address !== null ? address.port : port;
      server.close(() => resolve({ port: taken }));
    });
  });
}
