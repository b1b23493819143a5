/** Entries of the kind `cassette`: another upstream whose calls are recorded on a tape, or answered from one. */
import * as z from "zod";
import { CASSETTE_MODES } from "../../recordings/types.ts";
import { wrongIssue, type Entry, type ParsedUpstreams } from "../config/parsed.ts";
import { atFirstUse } from "../../at-first-use.ts";

const tapeError = { error: "must be a name of 1 to 64 characters: a-z, 0-9, _ and -" };

const schema = atFirstUse(() =>
  z.strictObject({
    kind: z.literal("cassette"),
    tape: z
      .string(tapeError)
      .regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, tapeError)
      .optional(),
    mode: z.enum(CASSETTE_MODES, { error: `must be one of ${CASSETTE_MODES.join(", ")}` }).default("replay"),
    upstream: z.record(z.string(), z.unknown(), {
      error: "must be the upstream whose answers are recorded, an object",
    }),
  }),
);

/** Where nothing is sent, no key is needed: a test that replays a tape has none. */
const CREDENTIALS = new Set(["api_key", "keys", "headers"]);

/** `recorded` parses the upstream that is recorded. */
export function parseCassette(
  { name, fields, vars }: Entry,
  recorded: (entry: Entry) => ParsedUpstreams,
): ParsedUpstreams {
  const parsed = schema().safeParse(fields);
  if (!parsed.success) return wrongIssue(name, parsed.error);
  const { tape, mode, upstream } = parsed.data;
  const needed = Object.entries(upstream).filter(([field]) => mode !== "replay" || !CREDENTIALS.has(field));
  const read = recorded({ name, fields: Object.fromEntries(needed), vars });
  if (!read.ok) return { ...read, path: read.path.replace(/^UPSTREAMS\.[^.]*/, (own) => `${own}.upstream`) };
  const cassette = { tape: tape ?? name, mode };
  return { ok: true, upstreams: read.upstreams.map((each) => ({ ...each, cassette })) };
}
