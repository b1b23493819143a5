/** The columns of a .csv file, by the names in its header. */
import { Failure } from "../../failure.ts";
import { printable } from "../../text/printable.ts";
import { filled, type Row } from "./row.ts";
import type { CsvRecord } from "./csv.ts";

/** Names in a header, in lower case, and the fields that they set. If two columns set the same field, the first counts. */
const COLUMNS = {
  prompt: "prompt",
  custom_id: "id",
  id: "id",
  model: "model",
  system: "system",
} as const;

export type Header = { places: Map<"prompt" | "id" | "model" | "system", number>; width: number; ignored: string[] };

/**
 * @throws {Failure} if there is no prompt column.
 * @param record The first of the file.
 */
export function readHeader({ fields }: CsvRecord): Header {
  const places: Header["places"] = new Map();
  const ignored: string[] = [];
  const names = fields.map((field) => field.trim().toLowerCase());
  for (const [name, column] of Object.entries(COLUMNS)) {
    const place = names.indexOf(name);
    if (place !== -1 && !places.has(column)) places.set(column, place);
  }
  if (!places.has("prompt")) {
    const found = printable(names.join(", "));
    throw new Failure(
      `The first line must be a header with a column "prompt", separated by commas. Its columns are: ${found}.`,
    );
  }
  const used = new Set(places.values());
  for (const [place, name] of names.entries()) if (!used.has(place)) ignored.push(name);
  return { places, width: names.length, ignored };
}

/**
 * @throws {Failure} if the number of fields differs from the header's: a comma or a quote is misplaced, so the prompt would be wrong.
 */
export function rowOfRecord({ line, fields }: CsvRecord, { places, width }: Header): Row {
  if (fields.length !== width) {
    throw new Failure(
      `Line ${line} has ${fields.length} fields; the header has ${width}. A field with a comma must be quoted.`,
    );
  }
  const row: Row = {};
  for (const [column, place] of places) {
    const value = fields[place] ?? "";
    if (column === "prompt") row.prompt = filled(value, line);
    else if (value !== "") row[column] = value;
  }
  return row;
}
