/** Reads one task as its client wrote it: its edges by position, and what its prompt inserts. Faults name the field. */
import type { Tier } from "../answers/tiers.ts";
import type { CallBody } from "../../call.ts";
import { TASK_REFERENCES_MAX } from "../../limits.ts";
import type { Faults } from "./faults.ts";
import { referenceOf, tokensOf, type TaskReference } from "./refs.ts";
import { templatesOf } from "./substitute.ts";
import type { CompiledTask, Foreach, Injection, RunIf } from "./types.ts";

/** A task as a client describes it; null = the default. */
export type TaskSource = {
  id: string;
  body: Pick<CallBody, "prompt" | "messages">;
  /** Ids of tasks. References add more. */
  dependencies: readonly string[];
  /** A reference to the list whose elements it works on. */
  foreach: string | null;
  maxItems: number | null;
  runIf: RunIf | null;
  maxRetries: number | null;
  fallback: string | null;
  alternatives: readonly string[];
  contextLimitChars: number | null;
  /** Absent = the least. */
  tier?: Tier;
  phase: string | null;
  estimatedDurationMs: number | null;
};

/** A task whose place in the group is not known yet. */
export type ReadTask = Omit<CompiledTask, "first" | "slots" | "rank"> & {
  maxItems: number | null;
  /** Short references to numbers that no task has as its id: they stay text. */
  unusedReferences: readonly string[];
};

/** What reading a task needs to know of the others. */
export type TaskContext = {
  /** The position of a task by its id, and whether it is a `foreach`. */
  find: (id: string) => { position: number; isForeach: boolean } | null;
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
    for (const template of templatesOf(this.#source.body)) this.#scan(template);
    if (this.#context.inject === "markdown") for (const dependency of this.#dependencies) this.#insert(dependency, 1);
    const alternatives = this.#alternatives();
    const task: ReadTask = {
      id,
      dependencies: [...this.#dependencies].sort((a, b) => a - b),
      maxItems,
      unusedReferences: [...this.#unused],
      ...this.#rules(),
    };
    if (foreach !== null) task.foreach = foreach;
    if (alternatives.length > 0) task.alternatives = alternatives;
    if (this.#inserted.size > 0) task.inserted = [...this.#inserted];
    if (this.#itemFactor > 0) task.itemFactor = this.#itemFactor;
    return task;
  }

  /** The options that are taken as they are; those of the default are left out. */
  #rules(): Partial<CompiledTask> {
    const { runIf, maxRetries, fallback, contextLimitChars, tier, phase, estimatedDurationMs } = this.#source;
    return {
      ...(runIf !== null && runIf !== "all_success" && { runIf }),
      ...(maxRetries !== null && { maxRetries }),
      ...(fallback !== null && { fallback }),
      ...(contextLimitChars !== null && { contextLimitChars }),
      ...(tier !== undefined && { tier }),
      ...(phase !== null && { phase }),
      ...(estimatedDurationMs !== null && { estimatedDurationMs }),
    };
  }

  #addStated(id: string, field: string): void {
    const found = this.#find(id, field);
    if (found !== null) this.#dependencies.add(found.position);
  }

  /** Finds another task; null, with a fault, if there is none. */
  #find(id: string, field: string): { position: number; isForeach: boolean } | null {
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

  #alternatives(): number[] {
    const { alternatives, foreach } = this.#source;
    const { faults, path } = this.#context;
    const positions: number[] = [];
    for (const [index, id] of alternatives.entries()) {
      const field = `alternatives[${index}]`;
      const found = this.#find(id, field);
      if (found === null) continue;
      if (foreach !== null || found.isForeach) {
        const message = "a foreach task neither has nor is an alternative";
        faults.add({ code: "invalid_alternative", path: path(field), message });
      } else positions.push(found.position);
    }
    return positions;
  }
}
