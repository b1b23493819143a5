/** The platform's TCP sockets, to find out whether a host can be reached. */
import type { Address } from "../providers/reached.ts";

/** Connects and closes the connection again; rejects if no connection, or no TLS handshake, can be made. */
export async function connectOnce({ hostname, port, tls }: Address): Promise<void> {
  // Loaded only where a gateway looks: other platforms than Workers do not have it.
  const { connect } = await import("cloudflare:sockets");
  const socket = connect({ hostname, port }, { secureTransport: tls ? "on" : "off", allowHalfOpen: false });
  // It rejects as well if the connection fails, and nobody reads it.
  socket.closed.catch(() => undefined);
  await socket.opened;
  socket.close().catch(() => undefined);
}
