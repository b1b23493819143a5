/** `fanout runs`: the operator's list of runs. */
import { durationText, usdText } from "../text/amounts.ts";
import { printable } from "../text/printable.ts";
import { type Run, RunPage } from "../gateway/documents.ts";
import { GATEWAY_OPTIONS, GATEWAY_USAGE, gatewayOf, ID_CHARS_SHOWN, json } from "../gateway/requests.ts";
import { amountOf, parsed, wrong } from "../options.ts";
import { costAndTime, tableText } from "../text/table.ts";
import type { Surroundings } from "../command.ts";

const USAGE = `Usage: fanout runs [--status S] [--name TEXT] [--search TEXT] [--min-usd X] [--limit N] [--json] ${GATEWAY_USAGE}

Lists root runs, newest first. S: active, paused, closed, cancelled, expired, escalated. Needs the operator's key. The shown
beginning of an id names the run in fanout watch and fanout trace; --json has all of it. --search finds runs by a text in their
names, prompts, answers and errors, and says how many runs it has searched.
`;

export async function runs(args: string[], { env, read, stdout, stderr, signal }: Surroundings): Promise<number> {
  const startedAtMs = Date.now();
  const { values, positionals } = parsed("runs", args, {
    status: { type: "string" },
    name: { type: "string" },
    search: { type: "string" },
    "min-usd": { type: "string" },
    limit: { type: "string", default: "20" },
    json: { type: "boolean", default: false },
    ...GATEWAY_OPTIONS,
    help: { type: "boolean", short: "h", default: false },
  });
  if (values.help) return (stdout(USAGE), 0);
  if (positionals.length > 0) throw wrong("runs", "Expected options only.");
  const gateway = gatewayOf(values, { env, read }, { operator: true });
  const query = new URLSearchParams({ limit: values.limit });
  if (values.status !== undefined) query.set("status", values.status);
  if (values.name !== undefined) query.set("name", values.name);
  if (values.search !== undefined) query.set("search", values.search);
  const least = amountOf("runs", "min-usd", values["min-usd"]);
  if (least !== null) query.set("spent_usd_min", String(least));
  const reply = await json(gateway, `/runs?${query}`, { signal });
  if (values.json) return (stdout(`${JSON.stringify(reply)}\n`), 0);
  const page = RunPage.parse(reply);
  const found = page.data;
  stdout(tableText(HEADER, found.map(rowOf)));
  for (const run of found) stdout(matchText(run));
  stdout(unreadText(page));
  const spent = found.reduce((sum, run) => sum + run.budget.usd.spent, 0);
  stderr(
    `${found.length} ${found.length === 1 ? "run" : "runs"} · ${costAndTime(spent, startedAtMs)}${searchedText(page)}\n`,
  );
  return 0;
}

/** Where the searched text is in a run, a line; "" = nothing was searched. */
function matchText({ id, match: { where, excerpt } }: Run): string {
  return where === "" ? "" : `${id.slice(0, ID_CHARS_SHOWN)} ${where}: ${printable(excerpt)}\n`;
}

/** How far a search has come; "" = nothing was searched, or all of it. */
function searchedText({ search: { runs, older, in_part } }: RunPage): string {
  if (runs === 0) return "";
  const rest = older > 0 ? `; ${older} older were not` : "";
  return ` · ${runs} runs searched${rest}${in_part.length > 0 ? `; of ${in_part.length} only the newest calls` : ""}`;
}

export const HEADER = ["run", "name", "status", "spent", "limit", "calls", "pending", "failed", "age"];

/** The runs that the list could not read, a line each; "" = it has read all. */
export function unreadText({ unread, missing_parts: missing }: RunPage): string {
  const lines = unread.map(({ id, code, message }) => `${id} ${code}: ${message}\n`);
  return `${lines.join("")}${missing > 0 ? `${missing} parts of the list did not answer: runs are missing.\n` : ""}`;
}

/** The cells of a run, below `HEADER`. */
export function rowOf({ id, name, status, created_at, budget: { usd }, stats, metrics }: Run): (string | number)[] {
  return [
    id.slice(0, ID_CHARS_SHOWN),
    name.slice(0, 30) || "–",
    status,
    usdText(usd.spent),
    usd.limit === 0 ? "–" : usdText(usd.limit),
    stats.total_queries,
    stats.pending_queries,
    Object.values(metrics.failures).reduce((sum, count) => sum + count, 0),
    durationText(Date.now() - Date.parse(created_at)),
  ];
}
