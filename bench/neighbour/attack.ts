/** What an attack is: what one run does by its own token while another run works. */
import { connect, type Socket } from "node:net";
import type { Gateway, OpenedRun } from "../../test/support/gateway.ts";

export type Attack = {
  /** What the run does, in a few words. */
  what: string;
  /**
   * Opens runs and makes bodies; this part is not measured. It is called once per round. The function that it returns does the worst;
   * that one resolves when everything it sent is answered, refused or broken off.
   */
  prepare(attacker: Attacker, round: number): Promise<() => Promise<unknown>>;
};

/**
 * A request counts as at least so many bytes. The bound on processor time per MB is about what a request makes of its bytes: without a least
 * size, the cost of any request at all would break it.
 */
const REQUEST_BYTES_MIN = 16_384;
/** Longest wait for one answer, ms. */
const ANSWER_MS_MAX = 120_000;

export type Sent = { token: string; body?: Buffer | string; method?: string; headers?: Record<string, string> };

/** Sends the requests of an attack and counts them. */
export class Attacker {
  readonly gateway: Gateway;
  /** Bytes that strikes have sent, each request as at least `REQUEST_BYTES_MIN`. */
  bytes = 0;
  /** Answers of strikes, by status; 0 = none. */
  readonly statuses = new Map<string, number>();
  readonly #sockets: Socket[] = [];
  #isCounting = false;

  constructor(gateway: Gateway) {
    this.gateway = gateway;
  }

  /** Counts what is sent while `strike` runs. */
  async counted(strike: () => Promise<unknown>): Promise<void> {
    this.#isCounting = true;
    await strike();
    this.#isCounting = false;
  }

  /** A run of the attacker: a limit in USD, as an operator gives it to a sandbox. */
  openRun(settings: Record<string, unknown> = {}): Promise<OpenedRun> {
    return this.gateway.openRun({ budget: { usd: 1 }, max_parallel: 64, ...settings });
  }

  /** Sends a request: a POST if it has a body. Reads its answer to the end and returns it. Never rejects: a broken connection has status 0. */
  async send(path: string, { token, body, method, headers }: Sent): Promise<{ status: number; text: string }> {
    const size = body === undefined ? 0 : Buffer.byteLength(body);
    this.#count(size);
    let status = 0;
    let text = "";
    try {
      const answer = await this.gateway.fetch(path, {
        token,
        method: method ?? (body === undefined ? "GET" : "POST"),
        headers: { "content-type": "application/json", ...headers },
        ...(body === undefined ? {} : { body }),
        signal: AbortSignal.timeout(ANSWER_MS_MAX),
      });
      status = answer.status;
      text = await answer.text();
    } catch {
      // The gateway broke off, or gave no answer in time.
    }
    this.#note(String(status));
    return { status, text };
  }

  /** Begins a GET and reads nothing of its answer beyond the head: a client that is there and silent. */
  async hang(path: string, { token, headers }: Sent): Promise<void> {
    this.#count(0);
    const { hostname, port } = new URL(this.gateway.url);
    const socket = connect(Number(port), hostname);
    this.#sockets.push(socket);
    const lines = Object.entries({ host: "gateway", authorization: `Bearer ${token}`, ...headers });
    socket.write(`GET ${path} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`);
    const head = await new Promise<string>((resolve) => {
      socket.setTimeout(ANSWER_MS_MAX, () => resolve(""));
      socket.once("error", () => resolve(""));
      socket.once("close", () => resolve(""));
      socket.once("data", (data) => resolve(data.toString("latin1", 0, 12)));
    });
    socket.pause();
    this.#note(head.slice(9, 12) || "0");
  }

  /** Breaks off all silent clients. */
  leave(): void {
    for (const socket of this.#sockets.splice(0)) socket.destroy();
  }

  #count(bodyBytes: number): void {
    if (this.#isCounting) this.bytes += Math.max(bodyBytes, REQUEST_BYTES_MIN);
  }

  #note(status: string): void {
    if (this.#isCounting) this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
  }
}
