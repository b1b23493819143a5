/** Reads the text of one server-sent event, in place: every index found in its data is an index in the event. */

const LINE = /([^\r\n]*)(\r\n|\r|\n|$)/gy;
const DATA_FIELD = /^\uFEFF?data(?:: ?|$)/;
const EVENT_FIELD = /^\uFEFF?event: ?(.*)$/;
const DATA_START = /(?:^\uFEFF?|[\r\n])data(?:[:\r\n]|$)/;
const COMMENTS = /^\uFEFF?(?::[^\r\n]*|[\r\n])*$/;

export type EventFields = {
  /** The value of the `event` field; null where there is none. */
  name: string | null;
  /**
   * The event's text with all but its data blanked, so of the same length: JSON may have white space wherever a line
   * of data may end. Null where the event has no data.
   */
  data: string | null;
};

/** The fields of an event that the tap reads. */
export function fieldsOf(text: string): EventFields {
  let name: string | null = null;
  let data = "";
  let hasData = false;
  for (const [line, content = "", end = ""] of text.matchAll(LINE)) {
    const prefix = DATA_FIELD.exec(content)?.[0];
    if (prefix === undefined) {
      name = EVENT_FIELD.exec(content)?.[1] ?? name;
      data += " ".repeat(line.length);
    } else {
      hasData = true;
      data += " ".repeat(prefix.length) + content.slice(prefix.length) + " ".repeat(end.length);
    }
  }
  return { name, data: hasData ? data : null };
}

/** Whether an event has data: clients hear of no other. */
export function hasData(text: string): boolean {
  return text.startsWith("data:") || DATA_START.test(text);
}

/** Whether a text holds nothing but comments and line ends, which no client hears of. */
export function isComment(text: string): boolean {
  return COMMENTS.test(text);
}
