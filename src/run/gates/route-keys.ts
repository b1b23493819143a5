/**
 * The lines of the queue: calls that may start at the same gates wait in one line, so that whether its head may start is
 * known without looking at the call.
 */
import type { Position, Target } from "../leases/shard.ts";
import { FRESH } from "./choose.ts";

/** The line of calls for a target in a position: they share its gate, its upstream's keys, or what is left of a route. */
export function lineOf({ upstream, gate, choices, route, protocol }: Target, position: Position = FRESH): string {
  if (choices === undefined) return gate;
  if (route === undefined) return upstream;
  const { from, cause, spent } = position;
  return `route ${route} ${protocol ?? ""} ${from} ${cause ?? ""} ${spent}`;
}

type Line = { target: Target; position: Position };

export class Lines {
  readonly #withChoice = new Map<string, Line>();

  /** Registers the line of a target. There are as many as the configuration has upstreams, and places in its routes. */
  add(target: Target, position: Position = FRESH): void {
    if (target.choices !== undefined) this.#withChoice.set(lineOf(target, position), { target, position });
  }

  /** A target and a position like those of every call in the line; undefined for a line with one gate, its own name. */
  get(line: string): Line | undefined {
    return this.#withChoice.get(line);
  }

  /** The gates that the calls of a line may pass. */
  gatesOf(line: string): string[] {
    const choices = this.#withChoice.get(line)?.target.choices;
    return choices === undefined ? [line] : choices.flatMap(({ targets }) => targets.map(({ gate }) => gate));
  }
}
