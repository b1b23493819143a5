/** Reads an input of any format as rows, one at a time. */
import { CsvParser } from "./csv.mjs";
import { Failure } from "../../failure.mjs";
import { linesOf, textOfLine } from "../../text/lines.mjs";
import { readJsonRow } from "./row.mjs";
import { readHeader, rowOfRecord } from "./table.mjs";

/** @typedef {"jsonl" | "text" | "csv"} Kind */

/**
 * `line` is the line of the input where the row begins. `bytes` is the line itself, if it is already a request.
 * @typedef {{ line: number, reading: import("./row.mjs").Reading, bytes: Buffer | null }} InputRow
 */

/**
 * @param {AsyncIterable<Buffer>} chunks
 * @param {Kind} kind
 * @returns {AsyncGenerator<InputRow>}
 * @throws {Failure} for the first invalid line.
 */
export async function* rowsOf(chunks, kind) {
  if (kind === "csv") return yield* csvRows(chunks);
  for await (const line of linesOf(chunks)) {
    const text = textOfLine(line);
    /** @type {import("./row.mjs").Reading} */
    const reading =
      kind === "jsonl" ? readJsonRow(text, line.number) : { kind: "row", row: { prompt: text }, ignored: [] };
    yield { line: line.number, reading, bytes: reading.kind === "request" ? line.bytes : null };
  }
}

/**
 * @param {AsyncIterable<Buffer>} chunks
 * @returns {AsyncGenerator<InputRow>}
 */
async function* csvRows(chunks) {
  const parser = new CsvParser();
  /** @type {import("./table.mjs").Header | null} */
  let header = null;
  for await (const text of textOfChunks(chunks)) {
    for (const record of text === null ? parser.finish() : parser.push(text)) {
      if (header === null) {
        header = readHeader(record);
        continue;
      }
      const { ignored } = header;
      yield { line: record.line, reading: { kind: "row", row: rowOfRecord(record, header), ignored }, bytes: null };
    }
  }
}

/**
 * The text in pieces, then null.
 * @param {AsyncIterable<Buffer>} chunks
 */
async function* textOfChunks(chunks) {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const decode = (/** @type {Buffer | undefined} */ chunk) => {
    try {
      return chunk === undefined ? decoder.decode() : decoder.decode(chunk, { stream: true });
    } catch {
      throw new Failure("The input is not UTF-8 text. Save it as UTF-8.");
    }
  };
  for await (const chunk of chunks) yield decode(chunk);
  yield decode(undefined);
  yield null;
}
