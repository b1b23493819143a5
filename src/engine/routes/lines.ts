/**
 * The lines of the queue: calls that may start at the same gates wait in one line, so that whether its head may start is
 * known without looking at the call.
 */
import type { Target } from "../shard.ts";

/** The line of calls for a target: they share its gate, or its upstream's keys. */
export function lineOf({ upstream, gate, choices }: Target): string {
  return choices === undefined ? gate : upstream;
}

export class Lines {
  readonly #withChoice = new Map<string, Target>();

  /** Registers the line of a target. As many have choices as the configuration has upstreams. */
  add(target: Target): void {
    if (target.choices !== undefined) this.#withChoice.set(lineOf(target), target);
  }

  /** A target with choices like those of every call in the line; undefined for a line with one gate, its own name. */
  get(line: string): Target | undefined {
    return this.#withChoice.get(line);
  }
}
