/** The settings of the command, from its arguments and the environment. */
import { parseArgs } from "node:util";
import { serverOf, type Server } from "./server/server.ts";
import { GATEWAY_OPTIONS } from "../gateway/requests.ts";
import { Failure } from "../failure.ts";
import { ENDPOINTS, type Defaults } from "./input/request-line.ts";
import type { Places } from "../credential.ts";
import type { Kind } from "./input/rows.ts";

/**
 * `input` null: cancel the batch; "-": standard input. `endpoint` null: as in the input. `serviceTier` null: every line is sent live.
 */
export type Setting = {
  input: { path: string; kind: Kind } | null;
  output: string;
  format: Kind | "raw";
  endpoint: string | null;
  serviceTier: string | null;
  defaults: Defaults;
  server: Server;
  fresh: boolean;
  quiet: boolean;
  json: boolean;
};

const OPTIONS = {
  output: { type: "string", short: "o" },
  from: { type: "string" },
  format: { type: "string" },
  raw: { type: "boolean", default: false },
  model: { type: "string" },
  system: { type: "string" },
  "max-tokens": { type: "string" },
  temperature: { type: "string" },
  endpoint: { type: "string" },
  "service-tier": { type: "string" },
  ...GATEWAY_OPTIONS,
  fresh: { type: "boolean", default: false },
  cancel: { type: "boolean", default: false },
  json: { type: "boolean", default: false },
  quiet: { type: "boolean", short: "q", default: false },
  help: { type: "boolean", short: "h", default: false },
} as const;

/** Tiers of whole batches. */
const SERVICE_TIERS = ["batch"] as const;

const KINDS = ["jsonl", "text", "csv"] as const;

/**
 * @throws {Failure} with what is wrong.
 * @param args The arguments after `batch`.
 */
export function settingOf(args: readonly string[], places: Places): Setting | "help" {
  const { values, positionals } = parse(args);
  if (values.help) return "help";
  const { output, cancel, fresh, quiet, json } = values;
  if (output === undefined || output === "") throw wrong("The output file is missing. Name it with -o.");
  if (output === "-") throw wrong("The output must be a file, because the batch's id is stored next to it.");
  if (values.raw && values.format !== undefined) throw wrong("Use either --raw or --format, not both.");
  if (positionals.length > 1) throw wrong("Expected one input file. Prompts go into a file, not into the command.");
  const [path] = positionals;
  if (cancel && (path !== undefined || fresh)) throw wrong("--cancel accepts only -o, no input and no --fresh.");
  if (!cancel && path === undefined) throw wrong("The input file is missing.");
  return {
    input: path === undefined ? null : { path, kind: inputKind(path, values.from) },
    output,
    format: values.raw ? "raw" : outputKind(output, values.format),
    endpoint: oneOf("endpoint", values.endpoint, ENDPOINTS),
    serviceTier: oneOf("service-tier", values["service-tier"], SERVICE_TIERS),
    defaults: defaultsOf(values),
    server: serverOf({ url: values.url, tokenFile: values["token-file"], envFiles: values["env-file"] }, places),
    fresh,
    quiet,
    json,
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true });
  } catch (error) {
    throw wrong(error instanceof Error ? error.message : String(error));
  }
}

function inputKind(path: string, from: string | undefined): Kind {
  const kind = oneOf("from", from, KINDS) ?? kindByName(path);
  if (kind !== null) return kind;
  if (path === "-")
    throw wrong("The format of standard input is not known. Add --from jsonl, --from text or --from csv.");
  throw wrong("The format of the input is not known from its name. Add --from jsonl, --from text or --from csv.");
}

function outputKind(path: string, format: string | undefined): Kind {
  return oneOf("format", format, KINDS) ?? kindByName(path) ?? "jsonl";
}

function kindByName(path: string): Kind | null {
  if (/\.(jsonl|ndjson)$/i.test(path)) return "jsonl";
  if (/\.csv$/i.test(path)) return "csv";
  return /\.txt$/i.test(path) ? "text" : null;
}

function defaultsOf(values: ReturnType<typeof parse>["values"]): Defaults {
  const cap = values["max-tokens"];
  const heat = values.temperature;
  if (cap !== undefined && !/^[1-9][0-9]{0,8}$/.test(cap))
    throw wrong("--max-tokens must be a whole number above zero.");
  if (heat !== undefined && !/^[0-9]{1,3}(\.[0-9]+)?$/.test(heat)) throw wrong("--temperature must be a number.");
  return {
    ...(values.model === undefined ? {} : { model: values.model }),
    ...(values.system === undefined ? {} : { system: values.system }),
    ...(cap === undefined ? {} : { max_tokens: Number(cap) }),
    ...(heat === undefined ? {} : { temperature: Number(heat) }),
  };
}

function oneOf<T extends string>(name: string, value: string | undefined, known: readonly T[]): T | null {
  if (value === undefined) return null;
  const found = known.find((one) => one === value);
  if (found === undefined) throw wrong(`--${name} must be one of: ${known.join(", ")}.`);
  return found;
}

function wrong(sentence: string) {
  return new Failure(`${sentence}\nFor help, run: fanout batch --help`);
}
