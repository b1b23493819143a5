/**
 * Changing a run's limits, width or pause. The holder of the run's budget must agree: its reservation for this run rises
 * before the run's limits do and falls after them, so that at no instant the run may spend more than is reserved.
 */
import { dayReason } from "../../../src/run/money/admit.ts";
import { reservationFor } from "../../../src/run/money/allocate.ts";
import { DIMENSIONS, type Amounts, type Limits } from "../../../src/run/money/ledger.ts";
import { usdOf } from "../../../src/run/money/money.ts";
import type { Reason } from "../../../src/errors.ts";
import type { RunPatch, RunSettings } from "../../../src/objects/methods/runs.ts";
import { RunCaller } from "../../../src/objects/clients/caller.ts";
import { firstPlaceOf } from "../../../src/objects/clients/directory.ts";
import { directoryOf, isOfDay, type Objects } from "../../../src/objects/address.ts";
import type { Submit } from "../turns/commit-queue.ts";
import { missingLanes } from "../executors/lanes.ts";
import { SerialQueue } from "./serial-queue.ts";
import type { RunState } from "../state.ts";

export type PatchDeps = {
  objects: Objects;
  submit: Submit;
  /** Makes the run's alarm start the lanes that are missing. */
  startLanes: (run: RunState) => void;
};

/** A run's patches, one after another: a second one would raise the reservation that the first is lowering. */
export class Patches {
  readonly #deps: PatchDeps;
  readonly #queue = new SerialQueue();

  constructor(deps: PatchDeps) {
    this.#deps = deps;
  }

  /** Applies a patch. Null, or why it is refused. */
  apply(run: RunState, patch: RunPatch): Promise<Reason | null> {
    return this.#queue.add(() => this.#apply(run, patch));
  }

  /** Lowers the holder's reservation to the run's limits, if a patch that crashed may have left more. */
  settleReservation(run: RunState): Promise<void> {
    return this.#queue.add(() => this.#settleReservation(run));
  }

  async #apply(run: RunState, patch: RunPatch): Promise<Reason | null> {
    const { settings, engine } = run;
    const before = reservationFor(engine.ledger.limits);
    const wanted = reservationFor({ ...engine.ledger.limits, ...patch.limits });
    const moves = DIMENSIONS.some((dimension) => wanted[dimension] !== before[dimension]);
    if (settings.holder === null || !(moves || run.isReservationInDoubt)) return this.#applyHere(run, patch);
    // From here on a crash may leave a larger reservation than the limits: the row makes the next instance lower it.
    await this.#setInDoubt(run, true);
    const reason = (await this.#raise(run, wanted, patch.rootNanoUsdPerDay)) ?? (await this.#applyHere(run, patch));
    await this.#settleReservation(run);
    return reason;
  }

  async #settleReservation(run: RunState): Promise<void> {
    if (!run.isReservationInDoubt) return;
    // Never a rise, so no limit of the day refuses it. If the run has ended meanwhile, nothing is reserved: no change.
    const wanted = reservationFor(run.engine.ledger.limits);
    await resizeReservation(this.#deps.objects, run.settings, wanted, Number.MAX_SAFE_INTEGER);
    await this.#setInDoubt(run, false);
  }

  /** Raises the holder's reservation to `wanted`, in the dimensions in which it is higher. Returns the refusal, if any. */
  async #raise(run: RunState, wanted: Amounts, rootNanoUsdPerDay: number | null): Promise<Reason | null> {
    const most = reservationFor(run.engine.ledger.limits);
    const rises = DIMENSIONS.some((dimension) => wanted[dimension] > most[dimension]);
    for (const dimension of DIMENSIONS) most[dimension] = Math.max(most[dimension], wanted[dimension]);
    return rises ? resizeReservation(this.#deps.objects, run.settings, most, rootNanoUsdPerDay) : null;
  }

  async #applyHere(run: RunState, patch: RunPatch): Promise<Reason | null> {
    const reason = await this.#deps.submit<Reason | null>((reply) => reply(applyPatch(run, patch)));
    // A wider run needs lanes that nothing has started yet.
    const isShortOfLanes = run.hasGroupWork && missingLanes(run).length > 0;
    if (reason === null && isShortOfLanes) this.#deps.startLanes(run);
    return reason;
  }

  #setInDoubt(run: RunState, inDoubt: boolean): Promise<void> {
    return this.#deps.submit<void>((reply) => {
      run.setReservationInDoubt(inDoubt);
      reply();
    });
  }
}

/** Sets what the holder reserves for a run to `reservation`; or returns why it refuses, in the holder's own figures. */
async function resizeReservation(
  objects: Objects,
  { holder, parentId, id, createdAtMs }: Pick<RunSettings, "holder" | "parentId" | "id" | "createdAtMs">,
  reservation: Amounts,
  rootNanoUsdPerDay: number | null,
): Promise<Reason | null> {
  if (holder === "run" && parentId !== null) {
    return new RunCaller(objects, parentId).callWithRetry<Reason | null>((run) => run.resizeChild(id, reservation));
  }
  if (!isOfDay({ holder }) || rootNanoUsdPerDay === null) return null;
  const openedAt = firstPlaceOf({ createdAtMs });
  const part = directoryOf(objects, { id, holder });
  const resized = await part.resizeChild(id, reservation.usd, rootNanoUsdPerDay, openedAt);
  return resized.ok ? null : dayReason(reservation.usd, rootNanoUsdPerDay, resized.committedNanoUsd);
}

/** Sets what the patch names: absolute limits, which may not be below what is committed. */
function applyPatch(run: RunState, patch: RunPatch): Reason | null {
  const { ledger } = run.engine;
  const limits: Limits = { ...ledger.limits, ...patch.limits };
  const unlimited = DIMENSIONS.find((dimension) => ledger.limits[dimension] === null && limits[dimension] !== null);
  if (unlimited !== undefined && run.children.openCount > 0) {
    // A child of an unlimited run may have no limit either, and then nothing is reserved for what it spends.
    const message = `budget.${unlimited} cannot be limited while child runs are open; close them first`;
    return { reason: "invalid_request", message, param: `budget.${unlimited}` };
  }
  const short = ledger.setLimits(limits);
  if (short !== null) {
    const shown = (amount: number): number => (short === "usd" ? usdOf(amount) : amount);
    const committed = shown(ledger.committed(short));
    return { reason: "budget_below_committed", dimension: short, limit: shown(limits[short] ?? 0), committed };
  }
  run.applyPatch(patch);
  return null;
}
