/** Reads an input of any format as rows, one at a time. */
import { CsvParser } from "./csv.ts";
import { Failure } from "../../failure.ts";
import { linesOf, textOfLine } from "../../text/lines.ts";
import { readJsonRow, type Reading } from "./row.ts";
import { readHeader, rowOfRecord, type Header } from "./table.ts";

export type Kind = "jsonl" | "text" | "csv";

/** `line` is the line of the input where the row begins. `bytes` is the line itself, if it is already a request. */
export type InputRow = { line: number; reading: Reading; bytes: Buffer | null };

/** @throws {Failure} for the first invalid line. */
export async function* rowsOf(chunks: AsyncIterable<Buffer>, kind: Kind): AsyncGenerator<InputRow> {
  if (kind === "csv") return yield* csvRows(chunks);
  for await (const line of linesOf(chunks)) {
    const text = textOfLine(line);
    const reading: Reading =
      kind === "jsonl" ? readJsonRow(text, line.number) : { kind: "row", row: { prompt: text }, ignored: [] };
    yield { line: line.number, reading, bytes: reading.kind === "request" ? line.bytes : null };
  }
}

async function* csvRows(chunks: AsyncIterable<Buffer>): AsyncGenerator<InputRow> {
  const parser = new CsvParser();
  let header: Header | null = null;
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

/** The text in pieces, then null. */
async function* textOfChunks(chunks: AsyncIterable<Buffer>) {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const decode = (chunk: Buffer | undefined) => {
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
