/** How far the search in prompts and answers of all runs has come, and what it has found. */
import type { Json } from "../../api.ts";
import { countText } from "../format.ts";
import { isRecord, numberOf, objectOf, textOf } from "../line.ts";

/** Where a run has the text: in a text of a call, whose surroundings are the excerpt. */
export type FoundText = { where: string; excerpt: string };

/** `older` null = it is not known how many there are. `cursor` null = all runs were searched. */
export type TextSearch = {
  text: string;
  found: ReadonlyMap<string, FoundText | null>;
  runs: number;
  older: number | null;
  inPart: number;
  unreadPrompts: number;
  cursor: string | null;
};

export const SEARCHED_CHARS_MIN = 2;

export function noTextSearch(text: string): TextSearch {
  return { text, found: new Map(), runs: 0, older: null, inPart: 0, unreadPrompts: 0, cursor: null };
}

/** The search with one more page of `GET /runs?search=`. */
export function withPage(search: TextSearch, page: Json): TextSearch {
  const said = objectOf(page, "search");
  const inPart = said["in_part"];
  const data = Array.isArray(page["data"]) ? page["data"].filter(isRecord) : [];
  const found = new Map(search.found);
  for (const run of data) {
    const [id, match] = [textOf(run, "id"), objectOf(run, "match")];
    const [where, excerpt] = [textOf(match, "where"), textOf(match, "excerpt")];
    // What the row shows anyway needs no excerpt.
    const isShown = where === "id" || (match["group"] === null && where === "name");
    if (id !== null) found.set(id, isShown || where === null || excerpt === null ? null : { where, excerpt });
  }
  return {
    text: search.text,
    found,
    runs: search.runs + numberOf(said, "runs"),
    older: typeof said["older"] === "number" ? said["older"] : null,
    inPart: search.inPart + (Array.isArray(inPart) ? inPart.length : 0),
    unreadPrompts: search.unreadPrompts + numberOf(said, "unread_prompts"),
    cursor: page["has_more"] === true ? textOf(page, "next_cursor") : null,
  };
}

/** Says in one sentence which texts were searched, so that nobody takes what was not searched for what is not there. */
export function searchedText({ runs, older, inPart, unreadPrompts, cursor }: TextSearch): string {
  const all = older === null ? "" : ` of ${countText(runs + older)}`;
  const searched =
    cursor === null
      ? `Prompts and answers of all ${countText(runs)} runs searched`
      : `Prompts and answers of the newest ${countText(runs)}${all} runs searched`;
  const part =
    inPart === 0 ? "" : `, in ${countText(inPart)} long ${inPart === 1 ? "run" : "runs"} only the newest calls`;
  const unread = unreadPrompts === 0 ? "" : `, without ${countText(unreadPrompts)} prompts of large batches`;
  return `${searched}${part}${unread}.`;
}
