import { countText, durationText, usdText } from "../../model/format.ts";
import { STATE_TEXT, type TaskView } from "../../model/graph/task-states.ts";

/** Tasks that are listed; of more, the first. */
const LISTED_MAX = 100;

/** The tasks of the chosen box, with their figures. */
export function ChosenTasks({ tasks }: { tasks: readonly TaskView[] }) {
  if (tasks.length === 0) return <p class="dim">Choose a box to see its tasks.</p>;
  return (
    <div class="scroll" role="status">
      <table>
        <thead>
          <tr>
            <th>task</th>
            <th>state</th>
            <th class="number">calls</th>
            <th class="number">failed</th>
            <th class="number">time</th>
            <th class="number">cost</th>
          </tr>
        </thead>
        <tbody>
          {tasks.slice(0, LISTED_MAX).map(({ task, state, begun, failed, durationMs, costUsd }) => (
            <tr key={task.id}>
              <td>
                <code>{task.id}</code> {[task.tier, task.phase].filter((part) => part !== null).join(", ")}
              </td>
              <td>{STATE_TEXT[state]}</td>
              <td class="number">{countText(begun)}</td>
              <td class="number">{countText(failed)}</td>
              <td class="number">{durationMs === null ? "–" : durationText(durationMs)}</td>
              <td class="number">{usdText(costUsd)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {tasks.length > LISTED_MAX && <p class="dim">and {countText(tasks.length - LISTED_MAX)} more</p>}
    </div>
  );
}
