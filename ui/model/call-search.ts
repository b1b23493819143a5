/** What the search in prompts and answers of one run has found, and how far it has come. */
import type { Json } from "../api.ts";
import { countText } from "./format.ts";
import { isRecord, numberOf, textOf } from "./line.ts";

/** `found`: calls of groups, by `callKey`. `cursor` null = the whole run was searched. */
export type CallSearch = { found: ReadonlySet<string>; calls: number; unreadPrompts: number; cursor: string | null };

export function noCallSearch(): CallSearch {
  return { found: new Set(), calls: 0, unreadPrompts: 0, cursor: null };
}

export function callKey(group: string, index: number): string {
  return `${group}.${index}`;
}

/** The search with one more page of `GET /runs/:id/search`. */
export function callsFound(search: CallSearch, page: Json): CallSearch {
  const data = Array.isArray(page["data"]) ? page["data"].filter(isRecord) : [];
  const keys = data.flatMap((match) => {
    const group = textOf(match, "group");
    return group === null ? [] : [callKey(group, numberOf(match, "index"))];
  });
  return {
    found: new Set([...search.found, ...keys]),
    calls: search.calls + numberOf(page, "calls"),
    unreadPrompts: search.unreadPrompts + numberOf(page, "unread_prompts"),
    cursor: page["has_more"] === true ? textOf(page, "next_cursor") : null,
  };
}

/** Says which calls were searched, so that nobody takes what was not searched for what is not there. */
export function searchedCallsText({ calls, unreadPrompts, cursor }: CallSearch): string {
  const which = cursor === null ? "all stored calls" : `the newest ${countText(calls)} calls`;
  const unread = unreadPrompts === 0 ? "" : `, without ${countText(unreadPrompts)} prompts of a large batch`;
  return `Prompts and answers of ${which} searched${unread}.`;
}
