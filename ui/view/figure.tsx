import type { RunState } from "../model/run-state.ts";

/** The state grows in place: a component is drawn again because `version` differs. */
export type Versioned = { state: RunState; version: number };

/** A figure with its name, and the colour that it has in a bar. */
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
