/**
 * The labels of a call: what its client says about it for readers of the log. They change nothing else: no upstream gets them, and calls
 * that differ in nothing else are equal. All that carries, stores, tells and shows labels reads them by this table, so a new one is a field
 * of `CallLabels`, its record in `LABELS`, and its setting in src/contract/call-options.ts.
 */

/** Labels, by the names that settings of calls and lines of the log have for them; absent = its client names none. */
export type CallLabels = {
  /** At which step of its program the call is made, from 1. */
  step?: number;
  /** How many steps that program has. */
  steps?: number;
};

type LabelName = keyof CallLabels;
type LabelValue<Name extends LabelName> = NonNullable<CallLabels[Name]>;

type Label<Name extends LabelName> = {
  /** Its value in a line of the log, which another version may have written; undefined = the line has none. */
  read: (value: unknown) => LabelValue<Name> | undefined;
  /** The label without which it says nothing; absent = it says something alone. */
  beside?: LabelName;
  /** How people see it among the labels of a call, undefined = the call has none; absent = the label beside which it stands shows it. */
  shown?: (labels: CallLabels) => string | undefined;
};

/** In the order in which events have them. */
const LABELS: { readonly [Name in LabelName]-?: Label<Name> } = {
  step: {
    read: numberFrom1,
    shown: ({ step, steps }) => (step === undefined ? undefined : `step ${stepText(step, steps)}`),
  },
  steps: { read: numberFrom1, beside: "step" },
};

/** The names of all labels. */
export const LABEL_NAMES: readonly LabelName[] = namesIn(LABELS);

/** Whether the log has to tell something of a call beside its name. */
export function isLabelled(facts: CallLabels): boolean {
  for (const name of LABEL_NAMES) if (facts[name] !== undefined && LABELS[name].beside === undefined) return true;
  return false;
}

/** The labels among the facts of a call; undefined = it has none. */
export function labelsOf(facts: CallLabels): CallLabels | undefined {
  if (!isLabelled(facts)) return undefined;
  const labels: CallLabels = {};
  for (const name of LABEL_NAMES) if (says(name, facts)) take(labels, name, facts[name]);
  return labels;
}

/** The labels in a line of the log. `cleaned`: a text as its reader may show it. */
export function labelsIn(
  fields: Readonly<Record<string, unknown>>,
  cleaned: (text: string) => string = (text) => text,
): CallLabels {
  const read: CallLabels = {};
  for (const name of LABEL_NAMES) {
    const value = fields[name];
    take(read, name, LABELS[name].read(typeof value === "string" ? cleaned(value) : value));
  }
  return labelsOf(read) ?? {};
}

/** How people see the labels of a call, each as a text: `step 3/20`. */
export function labelTexts(labels: CallLabels): string[] {
  return LABEL_NAMES.flatMap((name) => LABELS[name].shown?.(labels) ?? []);
}

/** A step as people see it: `3/20`, or `3` if nobody has said how many there are. */
export function stepText(step: number, steps: number | undefined): string {
  return steps === undefined ? `${step}` : `${step}/${steps}`;
}

/** Whether a label says something beside these others. */
function says(name: LabelName, labels: CallLabels): boolean {
  const { beside } = LABELS[name];
  return beside === undefined || labels[beside] !== undefined;
}

function take<Name extends LabelName>(labels: CallLabels, name: Name, value: CallLabels[Name]): void {
  if (value !== undefined) labels[name] = value;
}

function numberFrom1(value: unknown): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0 ? value : undefined;
}

function namesIn<Table extends object>(table: Table): Extract<keyof Table, string>[] {
  const names: Extract<keyof Table, string>[] = [];
  for (const name in table) names.push(name);
  return names;
}
