/** Text of the document as HTML. All input is escaped; the only markup that is interpreted is `code`. */
import { html } from "hono/html";

/** HTML that is already escaped. */
export type Html = ReturnType<typeof html>;

/** Renders a sentence; text between backticks becomes code. */
export function prose(sentence: string): Html {
  const pieces = sentence.split("`");
  // An unpaired backtick is plain text.
  const paired = pieces.length % 2 === 1;
  return html`${pieces.map((piece, index) => (paired && index % 2 === 1 ? html`<code>${piece}</code>` : piece))}`;
}
