/** Parses UPSTREAMS. Messages name what was expected and never what was found: a value may be a secret. */
import { NAME_CHARS_MAX } from "../limits.ts";
import { isRecord } from "../text/json/record.ts";
import { wrong, type Entry, type ParsedUpstreams } from "./config/parsed.ts";
import type { Upstream } from "./config/types.ts";
import { parseCassette } from "./kinds/cassette.ts";
import { KINDS } from "./kinds/table.ts";

const NAME = /^[a-z0-9][a-z0-9_-]*$/;

type Parse = (entry: Entry) => ParsedUpstreams;

const RECORDABLE: ReadonlyMap<unknown, Parse> = new Map(
  Object.entries(KINDS).flatMap(([kind, { isRecordable, parse }]) => (isRecordable ? [[kind, parse]] : [])),
);

const ALL: ReadonlyMap<unknown, Parse> = new Map([
  ...Object.entries(KINDS).map(([kind, { parse }]): [string, Parse] => [kind, parse]),
  ["cassette", (entry) => parseCassette(entry, (recorded) => parseEntry(recorded, RECORDABLE))],
]);

/** Parses the value of UPSTREAMS; `secret:NAME` in a key or header reads `vars[NAME]`. */
export function parseUpstreams(value: unknown, vars: Record<string, unknown>): ParsedUpstreams {
  if (!isRecord(value)) return wrong([], "must be an object of upstreams by name, or JSON text of one");
  const upstreams: Upstream[] = [];
  for (const [name, fields] of Object.entries(value)) {
    if (!NAME.test(name) || name.length > NAME_CHARS_MAX) {
      return wrong([name], "an upstream's name starts with a-z or 0-9 and goes on with a-z, 0-9, _ and -");
    }
    const parsed = parseEntry({ name, fields, vars }, ALL);
    if (!parsed.ok) return parsed;
    upstreams.push(...parsed.upstreams);
  }
  return upstreams.length === 0 ? wrong([], "names no upstream") : { ok: true, upstreams };
}

function parseEntry(entry: Entry, kinds: ReadonlyMap<unknown, Parse>): ParsedUpstreams {
  const { name, fields } = entry;
  if (!isRecord(fields)) return wrong([name], "must be an object");
  const parse = kinds.get(fields["kind"]);
  if (parse !== undefined) return parse(entry);
  const names = [...kinds.keys()].map((kind) => `"${String(kind)}"`);
  return wrong([name, "kind"], `must be ${names.slice(0, -1).join(", ")} or ${names.at(-1)}`);
}
