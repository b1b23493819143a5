/** Looks at a run from outside while it runs: its budget, and the log as far as it is told. */
import { look } from "../budget/watch.ts";
import { ask } from "./ask.ts";
import type { Client } from "./client.ts";

/** Looks at the budget for one at the log: reading the log makes the gateway write what it could gather. */
const LOOKS_PER_READING = 10;

export class Looks {
  count = 0;
  /** Looks at which more than the limit was spent and reserved. */
  above = 0;
  /** The log's lines as they were first told. */
  readonly told: string[] = [];
  readonly #url: string;
  readonly #client: Client;
  readonly #runId: string;

  constructor(url: string, client: Client, runId: string) {
    this.#url = url;
    this.#client = client;
    this.#runId = runId;
  }

  /** One look. A gateway that is down is seen by nobody. */
  async take(): Promise<void> {
    const seen = await look(this.#url, this.#client.token).catch(() => null);
    if (seen === null) return;
    this.count += 1;
    if (seen.spent + seen.reserved > (seen.limit ?? Infinity)) this.above += 1;
    if (this.count % LOOKS_PER_READING === 0) await this.#read();
  }

  async #read(): Promise<void> {
    const path = `/runs/${this.#runId}/log?after=${this.told.length}`;
    const answer = await ask(this.#url + path, this.#client.token);
    if (answer?.status === 200) this.told.push(...answer.text.split("\n").filter((line) => line !== ""));
  }
}
