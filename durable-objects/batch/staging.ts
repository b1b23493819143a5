/** The pages of a group on their way into the run, several calls at a time, while its lines are being read. */
import type { CallPage } from "../../src/run/queue/call-page.ts";
import type { Reason } from "../../src/errors.ts";
import { PAGES_AHEAD_CHARS_MAX, PAGES_CALL_CHARS_MAX } from "../../src/limits.ts";
import type { Refused } from "../../src/objects/methods/types.ts";
import type { RunCaller } from "../../src/objects/clients/caller.ts";
import { SendAhead } from "../../src/objects/clients/groups/send-ahead.ts";

export class Staging {
  readonly #run: RunCaller;
  readonly #openKey: string;
  readonly #ahead = new SendAhead(PAGES_AHEAD_CHARS_MAX);
  #pages: CallPage[] = [];
  #chars = 0;
  #refused: Reason | null = null;

  /** `openKey`: of the group that the pages are for. */
  constructor(run: RunCaller, openKey: string) {
    this.#run = run;
    this.#openKey = openKey;
  }

  /** Whether the run has refused a page: then it has dropped the earlier ones, and takes no more. */
  get isRefused(): boolean {
    return this.#refused !== null;
  }

  /** Adds the next page. Rejects if an earlier one could not be sent. */
  async add(page: CallPage): Promise<void> {
    if (this.#chars + page.calls.length > PAGES_CALL_CHARS_MAX && this.#pages.length > 0) await this.#send();
    this.#pages.push(page);
    this.#chars += page.calls.length;
  }

  /** Adds the last page, if there is one, and waits for those before it. Returns the pages that are sent with the opening. */
  async finish(last: CallPage | null): Promise<{ pages: CallPage[] } | Refused> {
    if (last !== null) await this.add(last);
    await this.#ahead.arrived();
    return this.#refused === null ? { pages: this.#pages } : { ok: false, reason: this.#refused };
  }

  async #send(): Promise<void> {
    const pages = this.#pages;
    const chars = this.#chars;
    this.#pages = [];
    this.#chars = 0;
    await this.#ahead.add(chars, async () => {
      if (this.#refused !== null) return;
      const refused = await this.#run.callWithRetry<Refused | null>((stub) => stub.stagePages(this.#openKey, pages));
      this.#refused ??= refused?.reason ?? null;
    });
  }
}
