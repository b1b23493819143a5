/** Sockets to a run's object, as those open them who hold something of the run or wait for it. */
import type { SocketOwner } from "../../src/objects/methods/sockets.ts";
import { expect } from "vitest";
import type { TestRun } from "./objects-run.ts";
import { watched } from "./objects-watch.ts";

/** Opens a socket as its owner does. */
export async function hold(run: TestRun, owner: SocketOwner): Promise<WebSocket> {
  const url = `https://run/hold?owner=${encodeURIComponent(JSON.stringify(owner))}`;
  const { webSocket } = await run.object.fetch(url, { headers: { upgrade: "websocket" } });
  if (webSocket === null) throw new Error("the run gave no socket");
  webSocket.accept();
  return webSocket;
}

/** What a socket receives from now on. */
export function signalsOf(socket: WebSocket): () => unknown[] {
  const signals: unknown[] = [];
  socket.addEventListener("message", ({ data }) => void signals.push(JSON.parse(String(data))));
  return () => signals;
}

/** Waits until an executor has renewed its leases at a socket after now: the next time may have begun before. */
export async function untilRenewed(run: TestRun): Promise<void> {
  const renewals = (): number => watched(run.id).calls["webSocketMessage"] ?? 0;
  const earlier = renewals();
  await expect.poll(renewals, { interval: 5 }).toBeGreaterThan(earlier + 3);
}
