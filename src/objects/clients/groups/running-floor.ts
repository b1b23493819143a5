/**
 * The floor of a large batch while it is sent: pages that can never be paid for are refused before they are stored. The run keeps
 * nothing of it, so a repeated call counts nothing twice.
 */
import { Refusal } from "../../../errors.ts";
import { zeroAmounts, type Amounts } from "../../../run/money/ledger.ts";
import type { CallPage } from "../../../run/queue/call-page.ts";
import type { FloorReply } from "../../methods/groups.ts";
import type { RunCaller } from "../caller.ts";
import { objectFailure } from "../retry.ts";

export class RunningFloor {
  readonly #run: Pick<RunCaller, "callWithRetry">;
  readonly #idempotencyKey: string | null;
  #floor: Amounts = zeroAmounts();

  constructor(run: Pick<RunCaller, "callWithRetry">, idempotencyKey: string | null) {
    this.#run = run;
    this.#idempotencyKey = idempotencyKey;
  }

  /** Adds the next pages, whose facts refer to `models`. Throws a Refusal if the batch can never fit. */
  async add(pages: readonly CallPage[], models: readonly (string | null)[]): Promise<void> {
    const facts = pages.map((page) => page.facts);
    const request = { floor: this.#floor, models: [...models], facts, idempotencyKey: this.#idempotencyKey };
    const reply = await this.#run
      .callWithRetry<FloorReply>((stub) => stub.addFloor(request))
      .catch((error: unknown): FloorReply => {
        // An object that a deploy has not replaced yet decides with the opening.
        if (objectFailure(error) === "outdated") return { ok: true, floor: this.#floor };
        throw error;
      });
    if (!reply.ok) throw new Refusal(reply.reason);
    this.#floor = reply.floor;
  }
}
