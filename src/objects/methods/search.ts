/** The search in the texts of a run: what is asked of its object, and what it found. */

/** Where in a run a search goes on: at a call of a group, or at an event of the log; `g.GROUP.INDEX` or `l.NUMBER`. */
export type SearchPlace = string;

/** `from` null = from the beginning. `matchesMax`: a search that has found as many stops there. */
export type SearchRequest = { text: string; from: SearchPlace | null; matchesMax: number };

/** In which text of a call it was found. `name`: the id that its client gave it. */
export type MatchedText = "name" | "prompt" | "answer" | "error";

/**
 * A call with the text. `group` and `index` null = a single call, which no group has: then `callId` is its name in the log.
 * `excerpt`: what surrounds it, on one line.
 */
export type TextMatch = {
  where: MatchedText;
  group: string | null;
  index: number | null;
  callId: string | null;
  excerpt: string;
};

/**
 * Each call once, newest group first. `next` null = the whole run was searched. `calls`: how many it looked at; `chars`: of how
 * many characters. `unread`: calls whose prompts it has not read, because a large batch has stored them in R2.
 */
export type SearchReply = {
  matches: TextMatch[];
  next: SearchPlace | null;
  calls: number;
  chars: number;
  unread: number;
};
