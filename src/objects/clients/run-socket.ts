/**
 * A socket to a run object for what lasts: the object notices the end of its owner by it, and signals through it. It is
 * opened again when it is lost, until it is closed. It belongs to the request that opens it.
 */
import { waitUntil } from "cloudflare:workers";
import { SOCKET_RENEW_MS, SOCKET_RETRY_LIMITS_MS } from "../../limits.ts";
import type { SocketOwner, SocketSignal } from "../methods/sockets.ts";
import type { RunCaller } from "./caller.ts";
import type { LeavingSignal } from "../../call.ts";
import { jittered } from "./retry.ts";

/** The code of a close after which the object waits for nothing: the owner has returned what it held, or is about to. */
export const DONE_CODE = 1_000;
/** The code of a close by an executor that has ended: what it still holds is lost. It closes otherwise to open the next. */
export const ENDED_CODE = 4_001;

export type RunSocketDeps = {
  run: RunCaller;
  /** Called for each signal. */
  signalled: (signal: SocketSignal) => void;
  /** Called when the object gives no socket, before the next try: what the owner can do without one. */
  refused: () => Promise<void>;
  /** Age at which the socket is replaced by a new one, ms; null = never. */
  renewMs: number | null;
  /** What is said first at each socket; absent = nothing. */
  greeting?: () => SocketOwner;
};

export class RunSocket {
  #owner: SocketOwner;
  readonly #deps: RunSocketDeps;
  #socket: WebSocket | null = null;
  #isClosed = false;
  #closeCode = DONE_CODE;
  /** The request for a socket that has no reply yet; null = there is none. */
  #opening: Promise<unknown> | null = null;
  #renewal: ReturnType<typeof setTimeout> | null = null;

  constructor(owner: SocketOwner, deps: RunSocketDeps) {
    this.#owner = owner;
    this.#deps = deps;
    void this.#keepOpen();
  }

  /** What the owner is by now, which the object is sent. */
  update(owner: SocketOwner): void {
    this.#owner = owner;
    try {
      this.#socket?.send(JSON.stringify(owner));
    } catch {
      // The socket was lost: the next one is opened with it.
    }
  }

  /** Closes the socket, whose signals are ignored from now on. */
  close(code = DONE_CODE): void {
    this.#isClosed = true;
    this.#closeCode = code;
    // Were the owner's request to end before the reply, nobody would close the socket, and the object would believe in it.
    if (this.#opening !== null) waitUntil(this.#opening);
    if (this.#renewal !== null) clearTimeout(this.#renewal);
    this.#socket?.close(code);
    this.#socket = null;
  }

  async #keepOpen(): Promise<void> {
    for (let failures = 0; !this.#isClosed;) {
      const isOpened = await this.#open();
      if (this.#isClosed) return;
      if (!isOpened) await this.#deps.refused().catch(() => undefined);
      const limitMs = SOCKET_RETRY_LIMITS_MS[Math.min(failures, SOCKET_RETRY_LIMITS_MS.length - 1)] ?? 0;
      failures = isOpened ? 1 : failures + 1;
      await scheduler.wait(jittered(limitMs, Math.random));
    }
  }

  /** Opens the socket and resolves with true once it is lost; with false if the object gives none. */
  async #open(): Promise<boolean> {
    const asked = this.#owner;
    const url = `https://run/hold?owner=${encodeURIComponent(JSON.stringify(asked))}`;
    try {
      const { webSocket } = await this.#requested(url);
      if (webSocket === null) return false;
      webSocket.accept();
      if (this.#isClosed) {
        webSocket.close(this.#closeCode);
        return true;
      }
      this.#socket = webSocket;
      const ended = this.#ended(webSocket);
      if (this.#owner !== asked) this.update(this.#owner);
      if (this.#deps.greeting !== undefined) webSocket.send(JSON.stringify(this.#deps.greeting()));
      return await ended;
    } catch {
      // The object restarts.
      return false;
    }
  }

  /** Requests a socket. What follows the reply in the same step, as closing it, happens before its owner's request ends. */
  async #requested(url: string): Promise<Response> {
    const requested = this.#deps.run.callOnce<Response>((stub) =>
      stub.fetch(url, { headers: { upgrade: "websocket" } }),
    );
    const opening = requested.catch(() => undefined).then(() => scheduler.wait(0));
    this.#opening = opening;
    try {
      return await requested;
    } finally {
      if (this.#opening === opening) this.#opening = null;
    }
  }

  #ended(socket: WebSocket): Promise<true> {
    const { renewMs } = this.#deps;
    return new Promise((resolve) => {
      let renewal: ReturnType<typeof setTimeout> | null = null;
      // Called again when a renewed socket's close arrives: the next socket may be open by then, and keeps its own timer.
      const end = (): void => {
        if (renewal !== null) clearTimeout(renewal);
        if (this.#socket === socket) this.#socket = null;
        resolve(true);
      };
      const renew = (): void => {
        socket.close(DONE_CODE);
        end();
      };
      if (renewMs !== null) renewal = setTimeout(renew, renewMs);
      this.#renewal = renewal;
      socket.addEventListener("close", end);
      socket.addEventListener("error", end);
      socket.addEventListener("message", ({ data }) => {
        if (this.#socket === socket && typeof data === "string") this.#deps.signalled(JSON.parse(data) as SocketSignal);
      });
    });
  }
}

/** Waits at a socket for signals. */
export class WaitingSocket {
  readonly #socket: RunSocket;
  readonly #signal: LeavingSignal;
  #arrived: SocketSignal[] = [];
  #resolve: ((signal: SocketSignal | null) => void) | null = null;
  readonly #left = (): void => this.#wake(null);

  /** @param signal Aborts when the client has left: then nothing is waited for. */
  constructor(owner: SocketOwner, run: RunCaller, signal: LeavingSignal) {
    this.#signal = signal;
    const refused = (): Promise<void> => {
      this.#wake(null);
      return Promise.resolve();
    };
    const signalled = (arrived: SocketSignal): void => {
      if (this.#resolve === null) this.#arrived.push(arrived);
      else this.#wake(arrived);
    };
    this.#socket = new RunSocket(owner, { run, signalled, refused, renewMs: SOCKET_RENEW_MS });
    signal.addEventListener("abort", this.#left);
  }

  update(owner: SocketOwner): void {
    this.#socket.update(owner);
  }

  /** The next signal; null if the object gave no socket, or the client has left: the caller must repeat its request. */
  next(): Promise<SocketSignal | null> {
    const arrived = this.#arrived.shift();
    if (arrived !== undefined) return Promise.resolve(arrived);
    if (this.#signal.aborted) return Promise.resolve(null);
    return new Promise((resolve) => (this.#resolve = resolve));
  }

  close(): void {
    this.#signal.removeEventListener("abort", this.#left);
    this.#socket.close();
  }

  #wake(signal: SocketSignal | null): void {
    this.#resolve?.(signal);
    this.#resolve = null;
  }
}
