/**
 * Comma-separated values as RFC 4180 and spreadsheets write them: quotes, doubled quotes, line breaks within quotes. Packages
 * refuse or split such files otherwise (decisions/0007-command-without-dependencies.md).
 */
import { Failure } from "../../failure.ts";

/** Longest field, UTF-16 units: otherwise a quote that is never closed would put the whole file into memory. */
const FIELD_CHARS_MAX = 16 * 1024 * 1024;

/** `line` is where the record begins, from 1. */
export type CsvRecord = { line: number; fields: string[] };

/** Parses text in pieces, cut anywhere. Blank lines are skipped. */
export class CsvParser {
  /** State after the last character; "quote": a quote that may close the field. */
  #state: "start" | "plain" | "quoted" | "quote" = "start";
  #field = "";
  #fields: string[] = [];
  #line = 1;
  #recordLine = 1;
  #quoteLine = 1;
  #afterCr = false;
  #charsMax;

  constructor(charsMax: number = FIELD_CHARS_MAX) {
    this.#charsMax = charsMax;
  }

  /**
   * The records that end in this piece.
   * @throws {Failure} if the text is not CSV.
   */
  push(text: string): CsvRecord[] {
    const records: CsvRecord[] = [];
    let at = 0;
    while (at < text.length) {
      const from = at;
      at = this.#state === "quoted" ? endOf(text, at, QUOTE) : endOf(text, at, SPECIAL);
      if (at > from) this.#take(text.slice(from, at));
      if (at < text.length) this.#special(text.charAt(at), records);
      at += 1;
    }
    return records;
  }

  /** The last record, if the file does not end with a line break. */
  finish(): CsvRecord[] {
    if (this.#state === "quoted") {
      throw new Failure(`The quote that opens in line ${this.#quoteLine} is never closed.`);
    }
    const records: CsvRecord[] = [];
    this.#endRecord(records);
    return records;
  }

  /** @param span Without special characters. */
  #take(span: string) {
    if (this.#state === "quote") {
      throw new Failure(`Line ${this.#line} has text after a closing quote. Write a quote within quotes twice.`);
    }
    if (this.#state === "start") this.#state = "plain";
    this.#field += span;
    if (this.#state === "quoted") {
      // A CRLF that is cut between two pieces is one line break.
      this.#line += countBreaks(span) - (this.#afterCr && span.startsWith("\n") ? 1 : 0);
    }
    this.#afterCr = this.#state === "quoted" && span.endsWith("\r");
    if (this.#field.length > this.#charsMax) {
      throw new Failure(
        `A field in line ${this.#recordLine} has more than ${this.#charsMax} characters. A quote may not be closed.`,
      );
    }
  }

  #special(char: string, records: CsvRecord[]) {
    const afterCr = this.#afterCr;
    this.#afterCr = false;
    if (char === '"') return this.#quote();
    if (char === ",") return this.#endField();
    // The LF of a CRLF: its CR has ended the record.
    if (char === "\n" && afterCr) return;
    this.#afterCr = char === "\r";
    this.#line += 1;
    this.#endRecord(records);
  }

  #quote() {
    if (this.#state === "start") {
      this.#state = "quoted";
      this.#quoteLine = this.#line;
    } else if (this.#state === "quoted") {
      this.#state = "quote";
    } else {
      this.#state = this.#state === "quote" ? "quoted" : "plain";
      this.#field += '"';
    }
  }

  #endField() {
    this.#fields.push(this.#field);
    this.#field = "";
    this.#state = "start";
  }

  #endRecord(records: CsvRecord[]) {
    const isBlank = this.#fields.length === 0 && this.#state === "start";
    this.#endField();
    if (!isBlank) records.push({ line: this.#recordLine, fields: this.#fields });
    this.#fields = [];
    this.#recordLine = this.#line;
  }
}

const QUOTE = /"/g;
const SPECIAL = /[",\r\n]/g;

/** The index of the next match, or the end of the text. */
function endOf(text: string, from: number, pattern: RegExp) {
  pattern.lastIndex = from;
  return pattern.exec(text)?.index ?? text.length;
}

function countBreaks(text: string) {
  return text.match(/\r\n|\r|\n/g)?.length ?? 0;
}

/** A record as text, with its line break. */
export function csvLine(fields: readonly string[]): string {
  return `${fields.map((field) => (/[",\r\n]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field)).join(",")}\r\n`;
}
