/**
 * A socket to a run object for what lasts: the object notices the end of its owner by it, and signals through it. It is
 * opened again when it is lost, until it is closed. It belongs to the request that opens it.
 */
import { SOCKET_RETRY_LIMITS_MS } from "../limits.ts";
import type { SocketOwner, SocketSignal } from "../run-api/sockets.ts";
import type { RunCaller } from "./caller.ts";
import { jittered } from "./retry.ts";

/** The code of a close after which the object waits for nothing: the owner has returned what it held, or is about to. */
export const DONE_CODE = 1_000;

export type RunSocketDeps = {
  run: RunCaller;
  /** Called for each signal. */
  signalled: (signal: SocketSignal) => void;
  /** Called when the object gives no socket, before the next try: what the owner can do without one. */
  refused: () => Promise<void>;
};

export class RunSocket {
  readonly #owner: SocketOwner;
  readonly #deps: RunSocketDeps;
  #socket: WebSocket | null = null;
  #isClosed = false;

  constructor(owner: SocketOwner, deps: RunSocketDeps) {
    this.#owner = owner;
    this.#deps = deps;
    void this.#keepOpen();
  }

  /** Closes the socket, whose signals are ignored from now on. */
  close(): void {
    this.#isClosed = true;
    this.#socket?.close(DONE_CODE);
    this.#socket = null;
  }

  async #keepOpen(): Promise<void> {
    for (let failures = 0; !this.#isClosed;) {
      const isOpen = await this.#open();
      if (this.#isClosed) return;
      if (!isOpen) await this.#deps.refused().catch(() => undefined);
      const limitMs = SOCKET_RETRY_LIMITS_MS[Math.min(failures, SOCKET_RETRY_LIMITS_MS.length - 1)] ?? 0;
      failures = isOpen ? 1 : failures + 1;
      await scheduler.wait(jittered(limitMs, Math.random));
    }
  }

  /** Opens the socket and resolves with true once it is lost; with false if the object gives none. */
  async #open(): Promise<boolean> {
    const url = `https://run/hold?owner=${encodeURIComponent(JSON.stringify(this.#owner))}`;
    try {
      const response = await this.#deps.run.callOnce<Response>((stub) =>
        stub.fetch(url, { headers: { upgrade: "websocket" } }),
      );
      const { webSocket } = response;
      if (webSocket === null) return false;
      webSocket.accept();
      if (this.#isClosed) {
        webSocket.close(DONE_CODE);
        return true;
      }
      this.#socket = webSocket;
      return await this.#ended(webSocket);
    } catch {
      // The object restarts.
      return false;
    }
  }

  #ended(socket: WebSocket): Promise<true> {
    return new Promise((resolve) => {
      const end = (): void => {
        this.#socket = null;
        resolve(true);
      };
      socket.addEventListener("close", end);
      socket.addEventListener("error", end);
      socket.addEventListener("message", ({ data }) => {
        if (!this.#isClosed && typeof data === "string") this.#deps.signalled(JSON.parse(data) as SocketSignal);
      });
    });
  }
}
