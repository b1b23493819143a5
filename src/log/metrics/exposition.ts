/** The OpenMetrics text format: https://github.com/prometheus/OpenMetrics, version 1.0.0. */

export const OPENMETRICS_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8";

export type Labels = Readonly<Record<string, string>>;

/** One line: `suffix` follows the name of its family. */
export type Sample = { suffix: "" | "_total" | "_bucket" | "_sum" | "_count"; labels: Labels; value: number };

export type Family = {
  name: string;
  type: "counter" | "gauge" | "histogram";
  /** The name's last word, if the values have one. */
  unit?: "seconds";
  help: string;
  samples: readonly Sample[];
};

/** The text of these families. Each line is a series. */
export function exposition(families: readonly Family[]): string {
  return `${families.map(familyText).join("")}# EOF\n`;
}

function familyText({ name, type, unit, help, samples }: Family): string {
  const head = [`# TYPE ${name} ${type}`, ...(unit === undefined ? [] : [`# UNIT ${name} ${unit}`])];
  const lines = samples.map(({ suffix, labels, value }) => `${name}${suffix}${labelText(labels)} ${value}`);
  return [...head, `# HELP ${name} ${escaped(help)}`, ...lines, ""].join("\n");
}

function labelText(labels: Labels): string {
  const parts = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`);
  return parts.length === 0 ? "" : `{${parts.join(",")}}`;
}

/** Names of models come from clients: without this, one could end its line and write others. */
function escaped(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n").replaceAll('"', '\\"');
}
