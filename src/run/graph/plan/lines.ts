/**
 * A plan that is read while a model writes it: each task is known as soon as its line is complete. Text arrives in chunks of any
 * size; what is kept is the unfinished line.
 */
import { GRAPH_FAULTS_MAX, PLAN_LINE_CHARS_MAX } from "../../../limits.ts";

/** What a line of a plan says. */
export type LineContent<T> =
  | { kind: "task"; task: T }
  | { kind: "nothing" }
  | { kind: "end" }
  | { kind: "bad"; message: string };

/** A task of a plan, a line that cannot be read, or the end of the plan; lines count from 1. */
export type PlanEvent<T> =
  | { kind: "task"; line: number; task: T }
  | { kind: "bad"; line: number; message: string }
  | { kind: "end"; line: number };

export class PlanLines<T> {
  readonly #read: (text: string, line: number) => LineContent<T>;
  #rest = "";
  #line = 0;
  #badLines = 0;
  #hasEnded = false;

  /** `read` says what one line says, which has no line break. */
  constructor(read: (text: string, line: number) => LineContent<T>) {
    this.#read = read;
  }

  /** Takes the next part of the text; returns the events of the lines that it completes. Ignores what follows the end. */
  feed(chunk: string): PlanEvent<T>[] {
    const events: PlanEvent<T>[] = [];
    let start = 0;
    while (!this.#hasEnded) {
      const breakAt = chunk.indexOf("\n", start);
      if (breakAt === -1) break;
      this.#complete(this.#rest + chunk.slice(start, breakAt), events);
      this.#rest = "";
      start = breakAt + 1;
    }
    if (this.#hasEnded) return events;
    this.#rest += chunk.slice(start);
    if (this.#rest.length > PLAN_LINE_CHARS_MAX) {
      this.#line += 1;
      this.#refuse(`is longer than ${PLAN_LINE_CHARS_MAX} characters`, events);
      this.#finish(events);
    }
    return events;
  }

  /** The text has ended, which also ends its last line and the plan. */
  end(): PlanEvent<T>[] {
    const events: PlanEvent<T>[] = [];
    if (this.#hasEnded) return events;
    if (this.#rest !== "") this.#complete(this.#rest, events);
    if (!this.#hasEnded) this.#finish(events);
    return events;
  }

  #complete(text: string, events: PlanEvent<T>[]): void {
    this.#line += 1;
    const content = this.#read(text.replace(/\r$/, ""), this.#line);
    if (content.kind === "task") events.push({ kind: "task", line: this.#line, task: content.task });
    else if (content.kind === "bad") this.#refuse(content.message, events);
    else if (content.kind === "end") this.#finish(events);
  }

  /** After so many bad lines the text is no plan: reading on would only add more of them. */
  #refuse(message: string, events: PlanEvent<T>[]): void {
    events.push({ kind: "bad", line: this.#line, message });
    this.#badLines += 1;
    if (this.#badLines >= GRAPH_FAULTS_MAX) this.#finish(events);
  }

  #finish(events: PlanEvent<T>[]): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#rest = "";
    events.push({ kind: "end", line: this.#line });
  }
}

/** Reads lines of JSON: each is a task, as its client writes it in `tasks`. */
export function jsonLines(): PlanLines<unknown> {
  return new PlanLines<unknown>((text) => {
    if (text.trim() === "") return { kind: "nothing" };
    try {
      const task: unknown = JSON.parse(text);
      return { kind: "task", task };
    } catch {
      return { kind: "bad", message: "is not JSON; expected one task, as a JSON object on one line" };
    }
  });
}
