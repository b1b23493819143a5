/** Converts the input to a batch file, line by line. It keeps only the id and the line number of each line. */
import { createHash } from "node:crypto";
import { Failure } from "../../failure.ts";
import { printable } from "../../text/printable.ts";
import { CHAT, requestLine, type Defaults } from "./request-line.ts";
import { rowsOf, type Kind } from "./rows.ts";
import { FileSink } from "../sink.ts";

/** Number of ignored field names that are reported. */
const IGNORED_MAX = 10;

/**
 * `ids[k]` is the custom_id of line k + 1 of the file, `lines[k]` the line of the input that it came from. `hash` covers the file, the
 * endpoint and the service tier, `md5` the file.
 */
export type Converted = {
  path: string;
  bytes: number;
  hash: string;
  md5: string;
  endpoint: string;
  ids: string[];
  lines: number[];
  ignored: string[];
};

/**
 * @throws {Failure} for the first invalid line, or if there is no line.
 * @param options `endpoint` null: the one that the first line names, or chat completions.
 */
export async function convert(
  chunks: AsyncIterable<Buffer>,
  {
    kind,
    path,
    endpoint: requested,
    serviceTier,
    defaults,
  }: { kind: Kind; path: string; endpoint: string | null; serviceTier: string | null; defaults: Defaults },
): Promise<Converted> {
  const sink = await FileSink.create(path);
  const [sha256, md5] = [createHash("sha256"), createHash("md5")];
  const lineOfId: Map<string, number> = new Map();
  const ignored: Set<string> = new Set();
  let endpoint = requested;
  try {
    for await (const { line, reading, bytes } of rowsOf(chunks, kind)) {
      endpoint ??= (reading.kind === "request" ? reading.url : null) ?? CHAT;
      const id = reading.kind === "request" ? reading.id : (reading.row.id ?? `row-${lineOfId.size + 1}`);
      const before = lineOfId.get(id);
      if (before !== undefined) {
        throw new Failure(`Lines ${before} and ${line} have the same id: ${printable(id)}. Ids must be unique.`);
      }
      lineOfId.set(id, line);
      const text =
        reading.kind === "row" ? Buffer.from(requestLine(reading.row, { id, endpoint, defaults, line })) : null;
      if (reading.kind === "row" && ignored.size < IGNORED_MAX) for (const name of reading.ignored) ignored.add(name);
      const piece = Buffer.concat([text ?? bytes ?? Buffer.alloc(0), LF]);
      sha256.update(piece);
      md5.update(piece);
      await sink.write(piece);
    }
    if (endpoint === null) throw new Failure("The input is empty.");
  } catch (error) {
    await sink.abandon();
    throw error;
  }
  await sink.close();
  return {
    path,
    bytes: sink.bytes,
    hash: sha256.update(`${endpoint}${serviceTier === null ? "" : ` ${serviceTier}`}`).digest("hex"),
    md5: md5.digest("hex"),
    endpoint,
    ids: [...lineOfId.keys()],
    lines: [...lineOfId.values()],
    ignored: [...ignored].slice(0, IGNORED_MAX),
  };
}

const LF = Buffer.from("\n");
