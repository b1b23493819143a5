/** `fanout runs`: the operator's list of runs. */
import { durationText, usdText } from "../text/amounts.ts";
import { printable } from "../text/printable.ts";
import { GATEWAY_OPTIONS, GATEWAY_USAGE, gatewayOf, ID_CHARS_SHOWN, json } from "../gateway/requests.ts";
import { amountOf, parsed, wrong } from "../options.ts";
import { costAndTime, listAt, numberAt, sumAt, tableText, textAt } from "../text/table.ts";
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
  const page = await json(gateway, `/runs?${query}`, { signal });
  const found = listAt(page, "data");
  if (values.json) return (stdout(`${JSON.stringify(page)}\n`), 0);
  stdout(tableText(HEADER, found.map(rowOf)));
  for (const run of found) stdout(matchText(run));
  stdout(unreadText(page));
  const spent = found.reduce((sum: number, run) => sum + numberAt(run, "budget", "usd", "spent"), 0);
  stderr(
    `${found.length} ${found.length === 1 ? "run" : "runs"} · ${costAndTime(spent, startedAtMs)}${searchedText(page)}\n`,
  );
  return 0;
}

/** Where the searched text is in a run, a line; "" = nothing was searched. */
function matchText(run: unknown) {
  const where = textAt(run, "match", "where");
  return where === ""
    ? ""
    : `${textAt(run, "id").slice(0, ID_CHARS_SHOWN)} ${where}: ${printable(textAt(run, "match", "excerpt"))}\n`;
}

/** How far a search has come; "" = nothing was searched, or all of it. */
function searchedText(page: unknown) {
  const runs = numberAt(page, "search", "runs");
  if (runs === 0) return "";
  const older = numberAt(page, "search", "older");
  const part = listAt(page, "search", "in_part").length;
  const rest = older > 0 ? `; ${older} older were not` : "";
  return ` · ${runs} runs searched${rest}${part > 0 ? `; of ${part} only the newest calls` : ""}`;
}

export const HEADER = ["run", "name", "status", "spent", "limit", "calls", "pending", "failed", "age"];

/** The runs that the list could not read, a line each; "" = it has read all. */
export function unreadText(page: unknown): string {
  const lines = listAt(page, "unread").map(
    (run) => `${textAt(run, "id")} ${textAt(run, "code")}: ${textAt(run, "message")}\n`,
  );
  const missing = numberAt(page, "missing_parts");
  return `${lines.join("")}${missing > 0 ? `${missing} parts of the list did not answer: runs are missing.\n` : ""}`;
}

export function rowOf(run: unknown): (string | number)[] {
  const limit = numberAt(run, "budget", "usd", "limit");
  const calls = numberAt(run, "stats", "total_queries");
  return [
    textAt(run, "id").slice(0, ID_CHARS_SHOWN),
    textAt(run, "name").slice(0, 30) || "–",
    textAt(run, "status"),
    usdText(numberAt(run, "budget", "usd", "spent")),
    limit === 0 ? "–" : usdText(limit),
    calls,
    numberAt(run, "stats", "pending_queries"),
    sumAt(run, "metrics", "failures"),
    durationText(Date.now() - Date.parse(textAt(run, "created_at"))),
  ];
}
