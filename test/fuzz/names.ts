/** What a hostile request can name: credentials and ids, its own and those of a run that is none of its business. */
import type { Things } from "../support/things.ts";

export type Party = { id: string; token: string; things: Things };

export type Names = {
  /** The run that sends. */
  own: Party;
  /** The run whose token no request has: whatever is sent, it stays as it is, and nothing of it is shown. */
  other: Party;
  /** A worker token of the run that sends. */
  workerToken: string;
  adminKey: string;
};

/** The value of `{parameter}` in a path, for a party. If the parameter names nothing of the party, a word that exists. */
export function pathValue(path: string, parameter: string, { id, things }: Party): string {
  if (parameter !== "id") return PLAIN[parameter] ?? "a";
  if (path.startsWith("/groups/")) return things.group;
  if (path.startsWith("/dag/")) return things.dag;
  if (path.startsWith("/contexts/")) return things.context;
  if (path.startsWith("/v1/files/")) return things.files?.file ?? "file-none";
  if (path.startsWith("/v1/uploads/")) return things.files?.upload ?? "upload_none";
  if (path.startsWith("/v1/messages/batches/")) return things.files?.messageBatch ?? "msgbatch_none";
  if (path.startsWith("/v1/batches/")) return things.files?.batch ?? "batch_none";
  if (path.startsWith("/v1/models/")) return "sim/echo";
  return path.startsWith("/v1/responses/") ? "resp_none" : id;
}

const PLAIN: Readonly<Record<string, string>> = { index: "0", lang: "python", tape: "tape", name: "up" };

/** Models that exist. Those of `flaky`, which no good query needs, fail as the mock's grammar says (`test/support/steering.ts`). */
const MODELS = [
  "sim/echo",
  "sim/echo",
  "up/small",
  "flaky/status/503",
  "flaky/status/401",
  "flaky/status/404",
  "flaky/fault/not-json",
  "flaky/fault/truncated",
  "flaky/fault/html",
  "flaky/fault/no-usage",
  "flaky/status/429",
  "fanout/panel",
  "taped/echo",
  "nobody/model",
] as const;

/** Values of fields that name something, by the field's name. */
export function fieldWords({ own, other }: Names): ReadonlyMap<string, readonly string[]> {
  const parties = [own, other];
  const all = (of: (party: Party) => string) => parties.map(of);
  const file = ({ things }: Party) => things.files?.file ?? "file-none";
  return new Map<string, readonly string[]>([
    ["model", MODELS],
    ["planner_model", MODELS],
    ["default_model", MODELS],
    ["models", ["sim/echo", "up/*", "*", "up/small"]],
    ["input_file_id", all(file)],
    ["file_id", all(file)],
    ["file", all(file)],
    ["part_ids", all(({ things }) => things.files?.part ?? "part_none")],
    ["context", all(({ things }) => things.context)],
    ["over", all(({ things }) => things.context)],
    ["replay_from", all(({ id }) => id)],
    ["run", all(({ id }) => id)],
    ["url", PRIVATE_URLS],
    ["endpoint", ["/v1/chat/completions", "/v1/responses", "/", "//evil"]],
    ["completion_window", ["24h", "24h", "1h"]],
    ["method", ["tools/call", "tools/list", "initialize", "ping", "notifications/x", "resources/read"]],
    ["jsonrpc", ["2.0", "2.0", "1.0"]],
    ["tool_name", ["redirect", "echo", "none"]],
    ["name", ["redirect", "echo", "query", "batch"]],
  ]);
}

/** Spellings of addresses that only the gateway's own machine or network has. */
export const PRIVATE_URLS = [
  "http://127.0.0.1/",
  "http://localhost:80/",
  "http://[::1]/",
  "http://[::ffff:7f00:1]/",
  "http://0/",
  "http://0x7f000001/",
  "http://2130706433/",
  "http://127.1/",
  "http://169.254.169.254/latest/meta-data/",
  "http://metadata.google.internal/",
  "http://10.0.0.1/",
  "http://192.168.1.1./",
  "http://①②⑦.0.0.1/",
  "http://user:secret@example.com/",
  "https://example.com@127.0.0.1/",
  "file:///etc/passwd",
  "gopher://127.0.0.1/",
  "http://127.0.0.1\\@example.com/",
] as const;
