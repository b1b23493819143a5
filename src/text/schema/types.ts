/** The words of a compiled schema. */

/** Why a value does not fit: where in it (`.items[3].name`; "" = the value itself), and what is wrong there. */
export type Misfit = { path: string; problem: string };

/** Whether a value fits; null = it does. */
export type Check = (value: unknown, steps: StepCounter) => Misfit | null;

/** The steps that a check may still take. Both methods end the check where nothing is left. */
export type StepCounter = {
  /** Counts steps. */
  spend: (steps: number) => void;
  /** Steps that are left. */
  readonly left: number;
  /** Runs a schema's checks one level deeper. */
  nested: (run: () => Misfit | null) => Misfit | null;
};

/** Whether a text has a pattern somewhere in it. */
export type CountedPattern = (text: string, steps: StepCounter) => boolean;

/** Whether an inner schema applies to the same value as the schema around it, or to a part of that value. */
export type AppliesTo = "same" | "part";

/** What the compiler of a keyword may do. */
export type SchemaScope = {
  /** Compiles a schema inside the present one. `path`: its location, from the keyword on. */
  inner: (schema: unknown, path: string, appliesTo: AppliesTo) => Check;
  /** The check of the schema at a place of the whole: `#/$defs/node`. */
  reference: (pointer: string) => Check;
  /** Compiles a regular expression; null = it is refused, and with it the schema. */
  pattern: (source: string, path?: string) => CountedPattern | null;
  /** The other keywords of the present schema. */
  siblings: Readonly<Record<string, unknown>>;
  /** Refuses the whole schema for the value of this keyword. `path`: from the keyword on. */
  refuse: (problem: string, path?: string) => null;
};

/** Compiles the value of a keyword; null = it asserts nothing, or has been refused. */
export type Keyword = (value: unknown, scope: SchemaScope) => Check | null;

/** The misfit of a value itself. */
export function misfit(problem: string): Misfit {
  return { path: "", problem };
}

/** The misfit of a part of a value, seen from the value. */
export function within(part: string, inner: Misfit): Misfit {
  return { path: `${part}${inner.path}`, problem: inner.problem };
}
