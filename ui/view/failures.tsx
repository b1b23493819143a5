import { countText } from "../model/format.ts";
import { nameOf } from "../model/call.ts";
import type { RunState } from "../model/run-state.ts";

/** Failed calls by cause, the commonest first, each with its first example. */
export function Failures({ state }: { state: RunState; version: number }) {
  if (state.failures.size === 0) return null;
  const causes = [...state.failures.values()].toSorted((a, b) => b.count - a.count);
  return (
    <section aria-label="Failures">
      <h2>Failures</h2>
      <div class="scroll">
        <table>
          <thead>
            <tr>
              <th>calls</th>
              <th>code</th>
              <th>upstream</th>
              <th>first example</th>
            </tr>
          </thead>
          <tbody>
            {causes.map(({ code, upstream, count, example, call }) => (
              <tr key={`${code} ${upstream}`}>
                <td>{countText(count)}</td>
                <td>
                  <code>{code}</code>
                </td>
                <td>{upstream}</td>
                <td>
                  {nameOf(call)}: {example}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
