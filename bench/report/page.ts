/** docs/benchmarks.md, made from a result file alone. */
import { CLAIMS, figureOf } from "./claims.ts";
import { commandOf, comparisonTable, standings } from "./comparison.ts";
import { failuresOf, type ResultFile } from "./data.ts";

/** The command that measures all of the page and writes it. */
const PAGE_COMMAND = "npm run bench -- --peers --write-docs";

/** Columns from which on a table is turned on its side. */
const COLUMNS_MAX = 6;

const NOT_MEASURED: readonly string[] = [
  "**Production.** No figure here is from Cloudflare: see [deploy](deploy.md#what-is-measured-documented-and-inferred).",
  "**Real providers.** The upstream is a process on the same machine that answers at once or after a fixed time.",
  "**LiteLLM's budgets of keys, users and teams.** They need its database, and the engine of its database client comes from a host " +
    "that is no package registry. LiteLLM's source reserves for these before a call, so they may overshoot less than the " +
    "budget of a deployment, which the table shows.",
  "**LiteLLM's library budget** (`litellm.max_budget`). In this version it counted none of the bench's calls, which says nothing " +
    "of its proxy.",
  "**LiteLLM with several processes, or its cache in Redis.** Every gateway here has one process and its defaults.",
  "**rolter's budgets.** They need Redis; its example of a configuration says that without it they let every call pass.",
  "**Portkey's budgets and cache.** They belong to its hosted service; the package from npm was measured without them.",
  "**Gateways that no package registry has as a program**, such as those that come as a container or download their binary.",
  "**Networks and larger machines.** Upstream, gateway and clients share the machine below.",
];

export function benchmarksPage(data: ResultFile): string {
  return [
    "# Benchmarks",
    "",
    "This page is generated: do not edit it. The command measures it anew, on any machine, and",
    "[bench](../bench/README.md) describes the method.",
    "",
    "```sh",
    `npm ci && ${PAGE_COMMAND}`,
    "```",
    "",
    ...conditions(data),
    "",
    "Upstream, gateway and clients share the cores, so seconds depend on the machine as much as on the code: compare figures of one table",
    "with each other, and with no other machine's. fanout reserves and settles every call in a run with a limit in each dimension, with",
    `its state on disk. ${budgetsOf(data)}`,
    "",
    "## Beside other gateways",
    "",
    "`npm run bench -- --peers SUITE` measures one row, and `--peers=a,b` names the gateways; without `--peers`, only Portkey is beside.",
    "",
    comparisonTable(data),
    "",
    "| gateway | version | budget | what it is, and how it is configured here |",
    "|---|---|---|---|",
    ...data.gateways.map(({ title, version, budget, about }) => `| ${title} | ${version} | ${budget} | ${about} |`),
    "",
    "## Who is ahead",
    "",
    "Written from the figures above: two are level if they differ by at most 5 %. A gateway that is named nowhere in a line was not",
    "measured there, or has nothing of the kind.",
    "",
    ...standings(data).map((line) => `- ${line}`),
    "",
    ...data.suites.flatMap((suite) => section(suite)),
    "## What README claims",
    "",
    "| claim | command | what it shows | figure |",
    "|---|---|---|---|",
    ...CLAIMS.map((claim) => {
      const { quote, command, shows } = claim;
      return `| ${quote.replaceAll("**", "")} | \`${command}\` | ${shows} | ${figureOf(claim, data)} |`;
    }),
    "",
    "## What was not measured",
    "",
    ...NOT_MEASURED.map((item) => `- ${item}`),
    "",
  ].join("\n");
}

/** Which of the others keep what, in a sentence or two. */
function budgetsOf({ gateways }: ResultFile): string {
  const named = (budget: string): string[] =>
    gateways.filter((gateway) => gateway.budget === budget).map(({ title }) => title);
  const said = (names: readonly string[], does: string, doMany: string): string[] => {
    const last = names.at(-1);
    if (last === undefined) return [];
    return [names.length === 1 ? `${last} ${does}.` : `${names.slice(0, -1).join(", ")} and ${last} ${doMany}.`];
  };
  return [
    ...said(named("hard"), "reserves every call, too", "reserve every call, too"),
    ...said(
      named("soft"),
      "has a budget only in the suite `overshoot`, where it compares it with what was spent before a call",
      "have a budget only in the suite `overshoot`, where they compare it with what was spent before a call",
    ),
    ...said(named("none"), "relays without a ledger", "relay without a ledger"),
  ].join(" ");
}

function conditions({ at, machine, versions, rounds, quick }: ResultFile): string[] {
  const rows = [
    ["date", at.slice(0, 10)],
    ["machine", `${machine["cpu"]}, ${machine["cores"]} cores`],
    [
      "versions",
      Object.entries(versions)
        .map(([name, version]) => `${name} ${version}`)
        .join(", "),
    ],
    [
      "rounds",
      `${rounds}, interleaved; figures are medians. Suites that count calls or money have one${quick ? ". Quick: to see that all works" : ""}`,
    ],
  ];
  return ["| | |", "|---|---|", ...rows.map(([name, value]) => `| ${name} | ${value} |`)];
}

function section({ name, about, table, rounds }: ResultFile["suites"][number]): string[] {
  const failures = [...failuresOf(rounds)].map(
    ([variant, reason]) => `- \`${variant}\` was not measured: ${plain(reason)}`,
  );
  const below = failures.length === 0 ? [] : [...failures, ""];
  return [`## ${name}`, "", about, "", `\`${commandOf(name)}\``, "", ...markdownOf(table), "", ...below];
}

/** A program's own words as text of a page: nothing in them is markup. */
function plain(text: string): string {
  return text
    .replaceAll(/[`*_[\]<>|\\]/g, " ")
    .replaceAll(/ {2,}/g, " ")
    .trim();
}

/** Rows as Markdown, the first column to the left; turned on its side if it has many columns, and more of them than rows. */
function markdownOf(rows: readonly Record<string, string>[]): string[] {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const lines = [columns, ...rows.map((row) => columns.map((column) => shown(row[column])))];
  const isWide = columns.length > COLUMNS_MAX && columns.length > rows.length;
  const turned = isWide ? columns.map((_, at) => lines.map((line) => line[at] ?? "")) : lines;
  const [head = [], ...body] = turned;
  const bar = ["---", ...head.slice(1).map(() => "---:")];
  return [head, bar, ...body].map((cells) => `| ${cells.join(" | ")} |`);
}

/** Without the targets of this project's own, which say nothing to others. */
function shown(cell: string | undefined): string {
  return (cell ?? "").replace(/ \(target .*$/, "").replaceAll(/\$?NaN( %| of \d+)?/g, "–");
}
