/** Reads one task as its client wrote it: its edges by position, and what its prompt inserts. Faults name the field. */
import type { Tier } from "../answers/tiers.ts";
import type { CallBody } from "../../call.ts";
import type { CallLabels } from "../../labels.ts";
import { CONDITION_TERMS_MAX, TASK_REFERENCES_MAX } from "../../limits.ts";
import { namedTasks, renamed, type Condition } from "../answers/condition.ts";
import type { Faults } from "./faults.ts";
import { referenceOf, tokensOf, type TaskReference } from "./refs.ts";
import { templatesOf } from "./substitute.ts";
import { conditionOf, type CompiledTask, type Foreach, type Injection, type RunIf } from "./types.ts";

/** An alternative by its id; `when`: it is tried only where that holds. */
export type AlternativeSource = string | { id: string; when: Condition<string> };

/** A task as a client describes it; null = the default. */
export type TaskSource = {
  id: string;
  body: Pick<CallBody, "prompt" | "messages">;
  /** Ids of tasks. References add more. */
  dependencies: readonly string[];
  /** A reference to the list whose elements it works on. */
  foreach: string | null;
  maxItems: number | null;
  /** A condition names tasks by their ids, and adds them to the dependencies. */
  runIf: RunIf<string> | null;
  maxRetries: number | null;
  fallback: string | null;
  alternatives: readonly AlternativeSource[];
  contextLimitChars: number | null;
  /** Set if its condition is likely to hold. */
  likely?: true;
  /** Absent = the least. */
  tier?: Tier;
  phase: string | null;
  estimatedDurationMs: number | null;
  /** The labels of its calls; absent = they have none. The name is that of stored rows. */
  step?: CallLabels;
};

/** A task whose place in the group is not known yet. */
export type ReadTask = Omit<CompiledTask, "first" | "slots" | "rank"> & {
  maxItems: number | null;
  /** Short references to numbers that no task has as its id: they stay text. */
  unusedReferences: readonly string[];
  /** What must hold for one of its alternatives to be tried, by that one's position, until the alternative has it as its `runIf`. */
  whens?: ReadonlyMap<number, Condition>;
};

/** Another task: its position, whether it is a `foreach`, and whether its `run_if` is a condition on outputs. */
export type FoundTask = { position: number; isForeach: boolean; hasCondition: boolean };

/** What reading a task needs to know of the others. */
export type TaskContext = {
  /** A task by its id; null = there is none. */
  find: (id: string) => FoundTask | null;
  inject: Injection;
  faults: Faults;
  /** Names a field of the task from the root of the request. */
  path: (field: string) => string;
};

/**
 * A JSON part that is inserted can be longer than it was in the output, because numbers are written out (`1e20`): at most
 * six times.
 */
const JSON_FACTOR = 6;

/** The task with its edges; what is wrong with it goes to `context.faults`. */
export function readTask(source: TaskSource, context: TaskContext): ReadTask {
  return new TaskReader(source, context).read();
}

class TaskReader {
  readonly #source: TaskSource;
  readonly #context: TaskContext;
  readonly #dependencies = new Set<number>();
  readonly #inserted = new Map<number, number>();
  readonly #unused = new Set<string>();
  #itemFactor = 0;
  #references = 0;

  constructor(source: TaskSource, context: TaskContext) {
    this.#source = source;
    this.#context = context;
  }

  read(): ReadTask {
    const { id, dependencies, maxItems } = this.#source;
    dependencies.forEach((dependency, index) => this.#addStated(dependency, `dependencies[${index}]`));
    const foreach = this.#foreach();
    const runIf = this.#runIf(foreach);
    for (const template of templatesOf(this.#source.body)) this.#scan(template);
    if (this.#context.inject === "markdown") for (const dependency of this.#dependencies) this.#insert(dependency, 1);
    const { alternatives, whens } = this.#alternatives();
    this.#checkLikely(runIf);
    const task: ReadTask = {
      id,
      dependencies: [...this.#dependencies].sort((a, b) => a - b),
      maxItems,
      unusedReferences: [...this.#unused],
      ...this.#rules(),
    };
    if (foreach !== null) task.foreach = foreach;
    if (runIf !== null && runIf !== "all_success") task.runIf = runIf;
    if (alternatives.length > 0) task.alternatives = alternatives;
    if (whens.size > 0) task.whens = whens;
    if (this.#inserted.size > 0) task.inserted = [...this.#inserted];
    if (this.#itemFactor > 0) task.itemFactor = this.#itemFactor;
    return task;
  }

  /** The options that are taken as they are; those of the default are left out. */
  #rules(): Partial<CompiledTask> {
    const { maxRetries, fallback, contextLimitChars, likely, tier, phase, estimatedDurationMs, step } = this.#source;
    return {
      ...(likely !== undefined && { likely }),
      ...(maxRetries !== null && { maxRetries }),
      ...(fallback !== null && { fallback }),
      ...(contextLimitChars !== null && { contextLimitChars }),
      ...(tier !== undefined && { tier }),
      ...(phase !== null && { phase }),
      ...(estimatedDurationMs !== null && { estimatedDurationMs }),
      ...(step !== undefined && { step }),
    };
  }

  #addStated(id: string, field: string): void {
    const found = this.#find(id, field);
    if (found !== null) this.#dependencies.add(found.position);
  }

  /** Finds another task; null, with a fault, if there is none. */
  #find(id: string, field: string): FoundTask | null {
    const { find, faults, path } = this.#context;
    if (id === this.#source.id) {
      faults.add({ code: "self_reference", path: path(field), message: `task "${id}" depends on itself` });
      return null;
    }
    const found = find(id);
    if (found === null) {
      faults.add({ code: "unknown_dependency", path: path(field), message: `no task has the id "${id}"` });
    }
    return found;
  }

  #foreach(): Foreach | null {
    const { foreach, maxItems } = this.#source;
    const { faults, path } = this.#context;
    if (foreach === null) {
      if (maxItems !== null) {
        faults.add({ code: "invalid_foreach", path: path("max_items"), message: "needs foreach" });
      }
      return null;
    }
    const refuse = (message: string): null => {
      faults.add({ code: "invalid_foreach", path: path("foreach"), message });
      return null;
    };
    const reference = referenceOf(foreach);
    if (reference?.kind !== "task") {
      return refuse("expected one reference to a list, {{id.output.json.path}} or {{id.outputs}}");
    }
    const source = this.#find(reference.task, "foreach");
    if (source === null) return null;
    this.#dependencies.add(source.position);
    const isElementwise = reference.every || (reference.isShort && source.isForeach);
    if (!isElementwise && source.isForeach) {
      return refuse(`"${reference.task}" is itself a foreach task; expected {{${reference.task}.outputs}}`);
    }
    if (!isElementwise) return { source: source.position, path: reference.path ?? [] };
    if (maxItems !== null) return refuse("has one element per slot of its source; leave max_items out");
    return { source: source.position, path: [], elementwise: true };
  }

  /** Adds the edges of the references in a text. */
  #scan(template: string): void {
    const { faults, path } = this.#context;
    for (const { start, end, reference } of tokensOf(template)) {
      this.#references += 1;
      if (this.#references > TASK_REFERENCES_MAX) {
        const message = `has more than ${TASK_REFERENCES_MAX} references`;
        if (this.#references === TASK_REFERENCES_MAX + 1) {
          faults.add({ code: "too_large", path: path("prompt"), message });
        }
        return;
      }
      if (reference.kind === "item") {
        this.#itemFactor += JSON_FACTOR;
        if (this.#source.foreach !== null) continue;
        const message = `${template.slice(start, end)} needs foreach: only its slots have an element`;
        faults.add({ code: "invalid_reference", path: path("prompt"), message });
      } else this.#addReference(reference, template.slice(start, end));
    }
  }

  /** When it starts; the tasks that a condition names must end before it. */
  #runIf(foreach: Foreach | null): RunIf | null {
    const { runIf } = this.#source;
    if (runIf === null || typeof runIf === "string") return runIf;
    if (!("condition" in runIf)) return runIf;
    const placed = this.#placed(runIf.condition, foreach, "run_if");
    if (placed === null) return null;
    for (const position of namedTasks(placed)) this.#dependencies.add(position);
    return { condition: placed };
  }

  /** A condition over the positions of the tasks that it names; null, with a fault, if it is none. */
  #placed(condition: Condition<string>, foreach: Foreach | null, field: string): Condition | null {
    const { faults, path } = this.#context;
    const terms = namedTasks(condition).length;
    if (terms > CONDITION_TERMS_MAX) {
      const message = `has ${terms} comparisons; expected at most ${CONDITION_TERMS_MAX}`;
      faults.add({ code: "too_large", path: path(field), message });
      return null;
    }
    const known = faults.list.length;
    this.#checkTerms(condition, foreach, field);
    if (faults.list.length > known) return null;
    return renamed(condition, (id) => this.#context.find(id)?.position ?? 0);
  }

  /** What is made early is one call, whose prompt is whole before its condition is known. */
  #checkLikely(runIf: RunIf | null): void {
    const { likely, foreach, alternatives } = this.#source;
    if (likely === undefined) return;
    const refuse = (message: string): void =>
      this.#context.faults.add({ code: "invalid_condition", path: this.#context.path("likely"), message });
    const condition = conditionOf(runIf);
    if (condition === null) refuse("needs a run_if with a condition on outputs");
    else if (foreach !== null || alternatives.length > 0) refuse("is for tasks without foreach and alternatives");
    else if (namedTasks(condition).every((task) => this.#inserted.has(task)))
      refuse("is for prompts that do without the outputs which run_if looks at; this one inserts them");
  }

  /** A comparison is with one output, and what is an else needs a condition before it. */
  #checkTerms(condition: Condition<string>, foreach: Foreach | null, field: string): void {
    if ("all" in condition || "any" in condition) {
      for (const part of "all" in condition ? condition.all : condition.any) this.#checkTerms(part, foreach, field);
      return;
    }
    const id = "task" in condition ? condition.task : condition.otherwise;
    const found = this.#find(id, field);
    if (found === null) return;
    const refuse = (message: string): void =>
      this.#context.faults.add({ code: "invalid_condition", path: this.#context.path(field), message });
    const isElement = foreach?.elementwise === true && foreach.source === found.position;
    if ("task" in condition) {
      if (found.isForeach && !isElement) refuse(`"${id}" is a foreach task; expected a task that has one output`);
    } else if (!found.hasCondition) {
      refuse(`"${id}" has no condition in its run_if, so nothing can be its else; expected a task that has one`);
    } else if (found.isForeach) {
      refuse(`"${id}" is a foreach task; expected a task of one call`);
    }
  }

  #addReference(reference: TaskReference, spelling: string): void {
    const { find, faults, path } = this.#context;
    // A number without such a task is an amount, or a variable of a shell.
    if (reference.isShort && find(reference.task) === null) {
      this.#unused.add(spelling);
      return;
    }
    const found = this.#find(reference.task, "prompt");
    if (found === null) return;
    if (found.isForeach && !reference.every && !reference.isShort) {
      const message = `${spelling}: "${reference.task}" is a foreach task; expected {{${reference.task}.outputs}}`;
      faults.add({ code: "invalid_reference", path: path("prompt"), message });
      return;
    }
    this.#dependencies.add(found.position);
    this.#insert(found.position, reference.path === null ? 1 : JSON_FACTOR);
  }

  #insert(task: number, factor: number): void {
    this.#inserted.set(task, (this.#inserted.get(task) ?? 0) + factor);
  }

  #alternatives(): { alternatives: number[]; whens: Map<number, Condition> } {
    const { alternatives, foreach } = this.#source;
    const { faults, path } = this.#context;
    const positions: number[] = [];
    const whens = new Map<number, Condition>();
    for (const [index, each] of alternatives.entries()) {
      const { id, when } = typeof each === "string" ? { id: each, when: null } : each;
      const field = `alternatives[${index}]`;
      const found = this.#find(id, field);
      if (found === null) continue;
      if (foreach !== null || found.isForeach) {
        const message = "a foreach task neither has nor is an alternative";
        faults.add({ code: "invalid_alternative", path: path(field), message });
        continue;
      }
      positions.push(found.position);
      const placed = when === null ? null : this.#placed(when, null, `${field}.when`);
      if (placed !== null) whens.set(found.position, placed);
    }
    return { alternatives: positions, whens };
  }
}
