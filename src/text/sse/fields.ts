/** Reads the fields of one server-sent event in place: an index in its data is the same index in the event. */

const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;
const COLON = 0x3a;

const DATA_START = /(?:^\uFEFF?|[\r\n])data(?:[:\r\n]|$)/;

const encoder = new TextEncoder();
const utf8 = new TextDecoder("utf-8", { fatal: false, ignoreBOM: true });
const DATA = encoder.encode("data");
const EVENT = encoder.encode("event");
const BYTE_ORDER_MARK = encoder.encode("\uFEFF");

export type EventFields = {
  /** The value of the `event` field; null if missing. */
  name: string | null;
  /**
   * The event with all but its data blanked, so of the same length: JSON may have white space wherever a line of data
   * may end. Null if the event has no data.
   */
  data: Uint8Array | null;
};

/** The fields of an event that are read here. */
export function fieldsOf(event: Uint8Array): EventFields {
  let name: string | null = null;
  let data: Uint8Array | null = null;
  let start = startsWith(event, 0, BYTE_ORDER_MARK) ? BYTE_ORDER_MARK.length : 0;
  while (start < event.length) {
    const end = lineEnd(event, start);
    const dataStart = valueStart(event, { start, end }, DATA);
    const nameStart = valueStart(event, { start, end }, EVENT);
    if (nameStart !== null) name = utf8.decode(event.subarray(nameStart, end));
    if (dataStart !== null) {
      data ??= new Uint8Array(event.length).fill(SPACE);
      data.set(event.subarray(dataStart, end), dataStart);
    }
    start = end + 1;
  }
  return { name, data };
}

/** Whether an event has data: clients ignore all others. */
export function hasData(text: string): boolean {
  return text.startsWith("data:") || DATA_START.test(text);
}

/** Whether a text is nothing but comments and line ends, which clients ignore. */
export function isComment(text: string): boolean {
  const lines = text.replace("\uFEFF", "").split(/[\r\n]/);
  return lines.every((line) => line === "" || line.startsWith(":"));
}

/** The index of the field's value, behind the colon and one space; null if the line has another field. */
function valueStart(event: Uint8Array, line: { start: number; end: number }, field: Uint8Array): number | null {
  const fieldEnd = line.start + field.length;
  if (fieldEnd > line.end || !startsWith(event, line.start, field)) return null;
  if (fieldEnd === line.end) return line.end;
  if (event[fieldEnd] !== COLON) return null;
  return event[fieldEnd + 1] === SPACE ? fieldEnd + 2 : fieldEnd + 1;
}

function startsWith(event: Uint8Array, start: number, prefix: Uint8Array): boolean {
  return prefix.every((byte, at) => event[start + at] === byte);
}

function lineEnd(event: Uint8Array, start: number): number {
  let end = start;
  while (end < event.length && event[end] !== LF && event[end] !== CR) end++;
  return end;
}
