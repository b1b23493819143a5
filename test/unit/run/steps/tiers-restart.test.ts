/** Strict tiers across restarts: which slots wait follows from the stored facts and ends. */
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { Ledger, NO_LIMITS } from "../../../../src/run/money/ledger.ts";
import { CallPageBuilder, readFacts } from "../../../../src/run/queue/call-page.ts";
import { dispatch } from "../../../../src/run/steps/dispatch.ts";
import { enqueueSlots, releaseTiers } from "../../../../src/run/steps/enqueue.ts";
import { settle } from "../../../../src/run/steps/settle.ts";
import { indexOf } from "../../../../src/run/queue/slot.ts";
import { EngineState, type EngineDeps } from "../../../../src/run/state.ts";
import { failure, makeFacts, makeHeader, makeTarget, success } from "../../../support/engine.ts";
import { settingsOf } from "../../../support/engine-opening.ts";
import { Rows } from "../../../support/engine-rows.ts";

const TARGET = makeTarget({ attemptsMax: 1 });
const settings = settingsOf({ limits: { ...NO_LIMITS }, width: 3 } as Parameters<typeof settingsOf>[0]);

type Slot = { tier: 0 | 1 | 2; fails: boolean };

/** Runs a group of these slots; the object dies after each end whose number is in `crashes`. Returns the order of starts. */
function played(slots: readonly Slot[], crashes: ReadonlySet<number>) {
  const factsOf = (index: number) => makeFacts({ tier: slots[index]?.tier ?? 2 });
  const deps: EngineDeps = {
    random: () => 0,
    factsOf: (slotId) => factsOf(indexOf(slotId)),
    targetOf: () => TARGET,
  };
  const builder = new CallPageBuilder({});
  for (const index of slots.keys()) builder.add({ body: { prompt: "p" }, facts: factsOf(index) });
  const page = builder.flush();
  const header = makeHeader({
    count: slots.length,
    models: builder.models,
    rules: { tiers: "strict" },
    concurrency: 3,
  });
  const rows = new Rows();
  const kept = { openKey: "open 1", detach: true, errorStyle: "bracket", named: false } as const;
  rows.putGroup({ header, defaultsJson: "{}", sealed: true, ...kept }, page === null ? [] : [page]);
  let state = new EngineState({ ledger: new Ledger({ ...NO_LIMITS }), width: 3, windowMs: 50 }, deps);
  let group = state.openGroup(header);
  enqueueSlots(state, group, 0, page === null ? [] : readFacts(page.facts, header.models));
  releaseTiers(state, group);
  const endedTiers: number[] = [];
  for (let ends = 0; !group.done; ends++) {
    for (const { lease } of dispatch(state, new Map([[0, 3]]), ends).assignments) {
      const tier = slots[indexOf(lease.slotId ?? 0)]?.tier ?? 2;
      const earlier = slots.filter((slot) => slot.tier < tier).length;
      expect(endedTiers.filter((each) => each < tier)).toHaveLength(earlier);
    }
    const [first] = [...state.attempts.values()].map(({ lease }) => lease);
    if (first?.slotId == null) throw new Error("the group makes no progress");
    const slot = slots[indexOf(first.slotId)];
    endedTiers.push(slot?.tier ?? 2);
    settle(state, first.attemptId, slot?.fails === true ? failure("rejected") : success(), ends);
    rows.commit(state, ends, false);
    if (!crashes.has(ends) || group.done) continue;
    state = rows.rebuild(settings, { ...deps, targetOfLease: () => TARGET }, ends);
    const found = state.groups.get(1);
    if (found === undefined) throw new Error("an open group is lost");
    group = found;
  }
  const { status, tierFailures } = rows.result(1) ?? {};
  const failed = tierFailures?.indexes.map((indexes) => indexes.toSorted((a, b) => a - b));
  return { status, failed, ended: endedTiers.length };
}

it("no slot starts before the tiers before its own have ended, wherever the object dies", { tags: ["slow"] }, () => {
  const slot = fc.record({ tier: fc.constantFrom(0 as const, 1 as const, 2 as const), fails: fc.boolean() });
  fc.assert(
    fc.property(
      fc.array(slot, { minLength: 1, maxLength: 12 }),
      fc.array(fc.nat(12), { maxLength: 5 }),
      (slots, crashes) => {
        const failed = [0, 1, 2].map((tier) =>
          [...slots.keys()].filter((index) => slots[index]?.tier === tier && slots[index].fails),
        );
        expect(played(slots, new Set(crashes))).toMatchObject({ failed, ended: slots.length });
        expect(played(slots, new Set(crashes)).status).toBe(played(slots, new Set()).status);
      },
    ),
  );
});
