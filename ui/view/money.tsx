import type { Json } from "../api.ts";
import { usdText } from "../model/format.ts";
import { objectOf } from "../model/line.ts";
import type { RunState } from "../model/run-state.ts";
import { Figure, type Versioned } from "./figure.tsx";

/** The budget as a bar: spent, reserved, left. */
export function Money({ state, document }: Versioned & { document: Json | null }) {
  const usd = document === null ? {} : objectOf(objectOf(document, "budget"), "usd");
  const limit = typeof usd["limit"] === "number" ? usd["limit"] : null;
  const { spentUsd, reservedUsd, estimatedUsd, childrenUsd, openChildrenUsd, inFlightUsd } = state;
  const whole = Math.max(limit ?? spentUsd + reservedUsd, spentUsd + reservedUsd, Number.MIN_VALUE);
  const percent = (part: number) => `${Math.min(100, (part / whole) * 100)}%`;
  const left = limit === null ? null : Math.max(0, limit - spentUsd - reservedUsd);
  return (
    <section aria-label="Money">
      <div
        class="bar"
        role="img"
        aria-label={`${usdText(spentUsd)} spent of ${limit === null ? "no limit" : usdText(limit)}`}
      >
        <div class="spent" style={{ width: percent(spentUsd - estimatedUsd - childrenUsd) }} />
        <div class="estimated" style={{ width: percent(estimatedUsd) }} />
        {childrenOf(state).map(({ id, usd, isOpen }) => (
          <div
            key={id}
            class={isOpen ? "child open" : "child"}
            style={{ width: percent(usd) }}
            title={`${id}: ${usdText(usd)} ${isOpen ? "reserved" : "spent"}`}
          />
        ))}
        <div class="reserved" style={{ width: percent(inFlightUsd) }} />
      </div>
      <dl class="figures">
        <Figure name="spent" value={usdText(spentUsd)} mark="spent" />
        {estimatedUsd > 0 && <Figure name="of it estimated" value={`~${usdText(estimatedUsd)}`} mark="estimated" />}
        {childrenUsd > 0 && <Figure name="of it by child runs" value={usdText(childrenUsd)} mark="child" />}
        <Figure name="reserved" value={liveUsd(reservedUsd)} mark="reserved" />
        {openChildrenUsd > 0 && (
          <Figure name="of it for child runs" value={liveUsd(openChildrenUsd)} mark="child open" />
        )}
        <Figure name="left" value={left === null ? "no limit" : usdText(left)} />
        {limit !== null && <Figure name="limit" value={usdText(limit)} />}
      </dl>
      {(reservedUsd > 0 || estimatedUsd > 0) && (
        <p class="dim note">
          {reservedUsd > 0 && "* changes while calls and child runs go on. "}
          {estimatedUsd > 0 && "~ charged at its reservation: the upstream's bill is unknown."}
        </p>
      )}
    </section>
  );
}

/** An amount that still changes; all others are exact. */
function liveUsd(usd: number): string {
  return usd > 0 ? `${usdText(usd)}*` : usdText(usd);
}

/** Child runs that have a part of the bar of their own; the others share one. */
const CHILDREN_MAX = 24;

/** What child runs have spent, and what is reserved for those that are open, the largest first. */
function childrenOf({ children }: RunState): { id: string; usd: number; isOpen: boolean }[] {
  const parts = [...children.values()].map(({ id, spentUsd, reservedUsd }) => ({
    id,
    usd: spentUsd ?? reservedUsd,
    isOpen: spentUsd === null,
  }));
  const sorted = parts.toSorted((a, b) => Number(a.isOpen) - Number(b.isOpen) || b.usd - a.usd);
  if (sorted.length <= CHILDREN_MAX) return sorted;
  const others = [false, true].map((isOpen) => {
    const rest = sorted.slice(CHILDREN_MAX).filter((part) => part.isOpen === isOpen);
    return { id: `${rest.length} others`, usd: rest.reduce((sum, { usd }) => sum + usd, 0), isOpen };
  });
  return [...sorted.slice(0, CHILDREN_MAX), ...others];
}
