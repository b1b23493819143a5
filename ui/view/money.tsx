import type { Json } from "../api.ts";
import { usdText } from "../model/format.ts";
import { objectOf } from "../model/line.ts";
import type { RunState } from "../model/run-state.ts";

/** The budget as a bar: spent, reserved, left. `version` changes with the state. */
export function Money({ state, document }: { state: RunState; document: Json | null; version: number }) {
  const usd = document === null ? {} : objectOf(objectOf(document, "budget"), "usd");
  const limit = typeof usd["limit"] === "number" ? usd["limit"] : null;
  const { spentUsd, reservedUsd, estimatedUsd } = state;
  const whole = Math.max(limit ?? spentUsd + reservedUsd, spentUsd + reservedUsd, Number.MIN_VALUE);
  const percent = (part: number) => `${Math.min(100, (part / whole) * 100)}%`;
  const left = limit === null ? null : Math.max(0, limit - spentUsd - reservedUsd);
  return (
    <section aria-label="Money">
      <h2>Money</h2>
      <div
        class="bar"
        role="img"
        aria-label={`${usdText(spentUsd)} spent of ${limit === null ? "no limit" : usdText(limit)}`}
      >
        <div class="spent" style={{ width: percent(spentUsd - estimatedUsd) }} />
        <div class="estimated" style={{ width: percent(estimatedUsd) }} />
        <div class="reserved" style={{ width: percent(reservedUsd) }} />
      </div>
      <dl class="figures">
        <Figure name="spent" value={usdText(spentUsd)} mark="spent" />
        {estimatedUsd > 0 && <Figure name="of it estimated" value={`~${usdText(estimatedUsd)}`} mark="estimated" />}
        <Figure name="reserved" value={usdText(reservedUsd)} mark="reserved" />
        <Figure name="left" value={left === null ? "no limit" : usdText(left)} />
        {limit !== null && <Figure name="limit" value={usdText(limit)} />}
      </dl>
    </section>
  );
}

export function Figure({ name, value, mark }: { name: string; value: string; mark?: string }) {
  return (
    <div>
      <dt>
        {mark !== undefined && <i class={`mark ${mark}`} />}
        {name}
      </dt>
      <dd>{value}</dd>
    </div>
  );
}
