/** What a group's answer says of its early stop, of its early calls, and of the tiers of its calls. */
import { savedFacts } from "../../log/events.ts";
import { TIER_NAMES } from "../../run/answers/tiers.ts";
import { usdOf } from "../../run/money/money.ts";
import { toWire } from "../../errors.ts";
import type { GroupView } from "../../objects/methods/groups.ts";

const NOTHING = { calls: 0, aborted: 0, worstNanoUsd: 0, likelyNanoUsd: 0 };

/** The fields at the top of the answer; none for a group without `stop_when`. `stopped_at` null = it was not met. */
export function stopFields(stop: GroupView["stop"]) {
  if (stop === undefined) return {};
  const { saved, shadow, judges } = stop;
  const stopped_at = saved === null ? null : new Date(saved.atMs).toISOString();
  return {
    ...savedFacts(saved ?? NOTHING),
    shadow,
    stopped_at,
    ...(judges === undefined ? {} : { judge_groups: judges }),
  };
}

/** What a graph with `speculate` says of its early calls; nothing of any other group. */
export function speculationFields(speculation: GroupView["speculation"]) {
  if (speculation === undefined) return {};
  const { started, used, inFlight: in_flight, spentNanoUsd, wastedNanoUsd } = speculation;
  const money = { spent_usd: usdOf(spentNanoUsd), wasted_usd: usdOf(wastedNanoUsd) };
  return { speculation: { started, used, in_flight, ...money } };
}

/** The failed calls of a group with tiers, by what is to be done about them; none for a group without. */
export function tierFields(failures: GroupView["tierFailures"]) {
  if (failures === undefined) return {};
  const [escalations, warnings, notes] = TIER_NAMES.map((name, tier) =>
    failures
      .filter((failure) => failure.tier === tier)
      .map(({ index, id, reason }) => {
        const { code, message } = toWire(reason).error;
        return { index, id, tier: name, code, message };
      }),
  );
  return { escalations, warnings, notes };
}
