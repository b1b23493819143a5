import { usdText } from "../model/format.ts";
import type { RunState } from "../model/run-state.ts";

/** The runs that this run has opened, each with a link to its page. */
export function Children({ state }: { state: RunState; version: number }) {
  if (state.children.size === 0) return null;
  return (
    <section aria-label="Child runs">
      <h2>Child runs</h2>
      <ul>
        {[...state.children.values()].map(({ id, reservedUsd, spentUsd }) => (
          <li key={id}>
            <a href={`/ui/runs/${encodeURIComponent(id)}`}>
              <code>{id}</code>
            </a>{" "}
            {spentUsd === null ? `open, ${usdText(reservedUsd)} reserved` : `ended, ${usdText(spentUsd)} spent`}
          </li>
        ))}
      </ul>
    </section>
  );
}
