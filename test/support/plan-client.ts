/** A client that writes a plan while it reads the answer: fetch sends a whole body before it shows an answer, HTTP does not. */
import { once } from "node:events";
import { request, type ClientRequest, type IncomingMessage } from "node:http";
import { createInterface, type Interface } from "node:readline";

export type PlanType = "application/x-ndjson" | "text/x-llmcompiler";

/** An event of the answer, which is NDJSON; or the one line of another answer. */
export type PlanEvent = Record<string, unknown>;

export class PlanClient {
  readonly #request: ClientRequest;
  readonly #response: Promise<IncomingMessage>;
  #lines: AsyncIterator<string> | null = null;
  #reader: Interface | null = null;

  constructor(
    url: string,
    token: string,
    { type, accept = "application/x-ndjson" }: { type: PlanType; accept?: string },
  ) {
    const headers = { authorization: `Bearer ${token}`, "content-type": type, accept };
    this.#request = request(`${url}/dag`, { method: "POST", headers });
    this.#response = once(this.#request, "response").then(([response]: IncomingMessage[]) => {
      if (response === undefined) throw new Error("no response");
      return response;
    });
    this.#response.catch(() => undefined);
    this.#request.on("error", () => undefined);
    this.#request.flushHeaders();
  }

  /** Sends text as it is. */
  write(text: string): void {
    this.#request.write(text);
  }

  end(text = ""): void {
    this.#request.end(text);
  }

  /** Breaks the connection off. */
  leave(): void {
    this.#request.destroy();
  }

  async status(): Promise<number> {
    return (await this.#response).statusCode ?? 0;
  }

  /** The next line of the answer that is JSON; null after the last. */
  async next(): Promise<PlanEvent | null> {
    this.#reader ??= createInterface({ input: await this.#response });
    this.#lines ??= this.#reader[Symbol.asyncIterator]();
    for (;;) {
      const { done, value } = await this.#lines.next();
      if (done === true) return null;
      if (value.trim() !== "") return JSON.parse(value) as PlanEvent;
    }
  }

  /** All that is left of the answer. */
  async rest(): Promise<PlanEvent[]> {
    const events: PlanEvent[] = [];
    for (let event = await this.next(); event !== null; event = await this.next()) events.push(event);
    return events;
  }
}
