/** How wide a text is on a terminal, and as much of it as fits. */

/** Marks that are drawn over the character before them. Others, as vowel signs of Indic scripts, have a column of their own. */
const MARK = /[\p{Mn}\p{Me}]/u;
/** Characters that terminals draw two columns wide. A wrong guess only cuts a line early. */
const WIDE =
  /\p{Emoji_Presentation}|[\u{1100}-\u{115f}\u{2630}-\u{2637}\u{268a}-\u{268f}\u{2e80}-\u{a4cf}\u{a960}-\u{a97f}\u{ac00}-\u{d7a3}\u{f900}-\u{faff}\u{fe30}-\u{fe6f}\u{ff00}-\u{ff60}\u{ffe0}-\u{ffe6}\u{16fe0}-\u{18dff}\u{1aff0}-\u{1b2ff}\u{1d300}-\u{1d376}\u{1f000}-\u{1faff}\u{20000}-\u{3fffd}]/u;

/** The width of the text on a terminal, columns. */
export function widthOf(text: string): number {
  let width = 0;
  for (const character of text) width += columnsOf(character);
  return width;
}

/** The text, or as much of its beginning as fits into `columns` with an ellipsis at its end. */
export function cut(text: string, columns: number): string {
  if (widthOf(text) <= columns) return text;
  let kept = "";
  let width = 0;
  for (const character of text) {
    width += columnsOf(character);
    if (width > columns - 1) break;
    kept += character;
  }
  return columns < 1 ? "" : `${kept}…`;
}

function columnsOf(character: string): number {
  if (MARK.test(character)) return 0;
  return WIDE.test(character) ? 2 : 1;
}
