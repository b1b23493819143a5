/**
 * The lines of the queue: calls that may start at the same gates wait in one line, so that whether its head may start is
 * known without looking at the call.
 */
import type { Position, Target } from "../leases/shard.ts";
import { BUSY_LINES_MAX } from "../../limits.ts";
import { FRESH } from "./choose.ts";

/** The line of calls for a target in a position: they share its gate, its upstream's keys, or what is left of a route. */
export function lineOf({ upstream, gate, choices, route, protocol }: Target, position: Position = FRESH): string {
  if (choices === undefined) return gate;
  if (route === undefined) return upstream;
  const { from, cause, spent } = position;
  return `route ${route} ${protocol ?? ""} ${from} ${cause ?? ""} ${spent}`;
}

/** `isOfModel`: whether all its calls are for the target's model. */
type Line = { target: Target; position: Position; isOfModel: boolean };

export class Lines {
  /** Those with choices, and those of overloaded models. */
  readonly #known = new Map<string, Line>();
  #busyLines = 0;

  /** Registers the line of a target. There are as many as the configuration has upstreams, and places in its routes. */
  add(target: Target, position: Position = FRESH): void {
    if (target.choices !== undefined) {
      const isOfModel = target.route !== undefined;
      this.#known.set(lineOf(target, position), { target, position, isOfModel });
    }
  }

  /** Registers the line of calls whose model is overloaded by itself, so that no others wait behind them. Null = there are too many. */
  addBusy(target: Target, position: Position = FRESH): string | null {
    const line = `${lineOf(target, position)}\n${target.model}`;
    if (this.#known.has(line)) return line;
    if (this.#busyLines >= BUSY_LINES_MAX) return null;
    this.#busyLines += 1;
    this.#known.set(line, { target, position, isOfModel: true });
    return line;
  }

  /** A target and a position like those of every call in the line; undefined for a line with one gate, whose name it has. */
  get(line: string): Line | undefined {
    return this.#known.get(line);
  }

  /** The gates that the calls of a line may pass. */
  gatesOf(line: string): string[] {
    const target = this.#known.get(line)?.target;
    if (target === undefined) return [line];
    if (target.choices === undefined) return [target.gate];
    return target.choices.flatMap(({ targets }) => targets.map(({ gate }) => gate));
  }
}
