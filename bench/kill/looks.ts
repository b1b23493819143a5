/** Polls a run: its budget, and its log so far. */
import { look } from "../budget/watch.ts";
import { ask } from "./ask.ts";
import type { Client } from "./client.ts";

/** Budget reads per log read: reading the log makes the gateway write events that it could otherwise collect. */
const LOOKS_PER_READING = 10;

export class Looks {
  count = 0;
  /** Looks at which more than the limit was spent and reserved. */
  above = 0;
  /** The log's lines as they were first read. */
  readonly lines: string[] = [];
  readonly #url: string;
  readonly #client: Client;
  readonly #runId: string;

  constructor(url: string, client: Client, runId: string) {
    this.#url = url;
    this.#client = client;
    this.#runId = runId;
  }

  /** Reads once; does nothing while the gateway is down. */
  async take(): Promise<void> {
    const seen = await look(this.#url, this.#client.token).catch(() => null);
    if (seen === null) return;
    this.count += 1;
    if (seen.spent + seen.reserved > (seen.limit ?? Infinity)) this.above += 1;
    if (this.count % LOOKS_PER_READING === 0) await this.#read();
  }

  async #read(): Promise<void> {
    const path = `/runs/${this.#runId}/log?after=${this.lines.length}`;
    const answer = await ask(this.#url + path, this.#client.token);
    if (answer?.status === 200) this.lines.push(...answer.text.split("\n").filter((line) => line !== ""));
  }
}
