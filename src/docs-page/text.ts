/** Text of the document as HTML. Everything that enters is escaped; the only markup understood is `code`. */
import { html } from "hono/html";

/** HTML that was escaped when it was made. */
export type Html = ReturnType<typeof html>;

/** A sentence in which what stands between backticks is code. */
export function prose(sentence: string): Html {
  const pieces = sentence.split("`");
  // A backtick without its second is text.
  const paired = pieces.length % 2 === 1;
  return html`${pieces.map((piece, index) => (paired && index % 2 === 1 ? html`<code>${piece}</code>` : piece))}`;
}
