/** What the bench found, as rows for people: a figure, what was promised of it, whether it holds. */

/** `exact`: a promise of exactness, which fails the bench; the others are figures of this machine. */
export type Row = { what: string; figure: string; target: string; met: boolean | null; exact: boolean };

/** The result of one part of the bench. `faults` are sentences that are printed below the table. */
export type Part = { rows: Row[]; faults: string[] };

/** A promise of exactness. */
export function exact(what: string, figure: string, target: string, met: boolean): Row {
  return { what, figure, target, met, exact: true };
}

/** A figure that is to be at most `target`. */
export function atMost(what: string, figure: number, target: number, unit = ""): Row {
  const shown = (value: number) => `${value < 10 ? value.toFixed(2) : value.toFixed(1)}${unit}`;
  return { what, figure: shown(figure), target: `<= ${shown(target)}`, met: figure <= target, exact: false };
}

/** A figure that is to be at least `target`. */
export function atLeast(what: string, figure: number, target: number): Row {
  const shown = (value: number): string => value.toFixed(2);
  return { what, figure: shown(figure), target: `>= ${shown(target)}`, met: figure >= target, exact: false };
}

/** A figure that nothing was promised of. */
export function plain(what: string, figure: string): Row {
  return { what, figure, target: "", met: null, exact: false };
}

export function shownRow({ what, figure, target, met }: Row): Record<string, string> {
  // The last column is set to the left.
  return { what, figure, target, met: met === null ? "" : met ? "yes" : "MISSED" };
}
