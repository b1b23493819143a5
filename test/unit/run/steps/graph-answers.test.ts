/** Which slots of a graph `stop_when` judges, now and after a restart, and which of its failures are escalations. */
import { describe, expect, it } from "vitest";
import { isAnswer } from "../../../../src/run/rules/rule.ts";
import { GroupGraph } from "../../../../src/run/group/group-graph.ts";
import { Group } from "../../../../src/run/group/group.ts";
import { freshRecord } from "../../../../src/run/group/record.ts";
import { slotIdOf } from "../../../../src/run/queue/slot.ts";
import { makeHeader } from "../../../support/engine.ts";
import { taskOf, valid } from "../../../support/graphs.ts";

const TASKS = [
  taskOf("first", { tier: 0 }),
  taskOf("result", { tier: 0, dependencies: ["first"], alternatives: ["second"] }),
  taskOf("second", { tier: 0 }),
];

function groupOf(): { group: Group; graph: GroupGraph } {
  const compiled = valid(TASKS).graph;
  const graph = new GroupGraph(compiled, 1, { countElements: () => ({ ok: true, count: 0 }), outputOf: () => null });
  const stopWhen = { kind: "n_success", n: 1, shadow: false } as const;
  return { group: new Group(makeHeader({ seq: 1, count: 3, rules: { stopWhen, tiers: "priority" } }), graph), graph };
}

const completed = (index: number) => ({ ...freshRecord(slotIdOf(1, index)), state: "completed" as const, text: "x" });

describe("stop_when judges of a graph", () => {
  it("its results and the alternatives that answer for them, and no task that another one depends on", () => {
    const { group } = groupOf();
    expect([0, 1, 2].map((index) => isAnswer(group, completed(index)))).toEqual([false, true, true]);
  });

  it("no text of a failure, and nothing that has not completed", () => {
    const { group } = groupOf();
    const reason = { reason: "overloaded", message: "busy", retryAfterMs: 1 } as const;
    expect(isAnswer(group, { ...completed(1), reason })).toBe(false);
    expect(isAnswer(group, { ...completed(1), state: "failed", reason })).toBe(false);
  });
});

describe("the failure of a task with alternatives", () => {
  const play = (ending: "completed" | "failed") => {
    const { group, graph } = groupOf();
    graph.frontier.start();
    const end = (index: number, state: "completed" | "failed"): void => {
      group.restore(index, state, 1, 0);
      graph.frontier.ended(index, state);
    };
    end(0, "completed");
    end(1, "failed");
    const before = group.rules.shown.tierFailures;
    end(2, ending);
    return { before, after: group.rules.shown.tierFailures, status: group.status };
  };

  it("is none while an alternative may answer, nor when one has", () => {
    const { before, after, status } = play("completed");
    expect([before?.counts, after?.counts, status]).toEqual([[0, 0, 0], [0, 0, 0], "completed"]);
  });

  it("is one of the task, once, when the last alternative has failed", () => {
    const { after, status } = play("failed");
    expect([after, status]).toEqual([{ indexes: [[1], [], []], counts: [1, 0, 0] }, "escalated"]);
  });
});
