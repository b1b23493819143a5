/** Searches in prompts and answers of all runs once the reader's text has rested, and further back if the reader wants it. */
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { ApiError } from "../../api.ts";
import { listQuery, type Filters } from "../../model/runs/filters.ts";
import { noTextSearch, SEARCHED_CHARS_MIN, withPage, type TextSearch } from "../../model/runs/text-search.ts";
import type { Runs } from "../../watch-runs.ts";

/** A look into runs wakes them, so a reader who still types waits longer than for names, ms. */
const REST_MS = 600;
const PAGE = 100;

/** `search` null = no text is searched. `problem`: why the search did not go on, in the gateway's words. */
export type Searching = {
  search: TextSearch | null;
  isBusy: boolean;
  problem: string | null;
  more: () => void;
};

export function useTextSearch(watched: Runs, filters: Filters): Searching {
  const search = useSignal<TextSearch | null>(null);
  const isBusy = useSignal(false);
  const problem = useSignal<string | null>(null);
  const text = filters.text.trim();
  const others = listQuery({ ...filters, text: "" });
  /** Counts what was searched: an answer to an earlier text is dropped. */
  const texts = useRef(0);
  const look = async (before: TextSearch): Promise<void> => {
    const ofText = texts.current;
    const isWanted = (): boolean => texts.current === ofText;
    isBusy.value = true;
    problem.value = null;
    const query = new URLSearchParams(others);
    query.set("view", "summary");
    query.set("limit", String(PAGE));
    query.set("search", before.text);
    if (before.cursor !== null) query.set("cursor", before.cursor);
    try {
      const page = await watched.read(query.toString());
      if (isWanted()) search.value = withPage(before, page);
    } catch (error) {
      if (isWanted()) problem.value = messageOf(error);
    } finally {
      if (isWanted()) isBusy.value = false;
    }
  };
  useEffect(() => {
    texts.current += 1;
    search.value = null;
    isBusy.value = false;
    problem.value = null;
    if (text.length < SEARCHED_CHARS_MIN) return;
    isBusy.value = true;
    const due = setTimeout(() => void look(noTextSearch(text)), REST_MS);
    return () => clearTimeout(due);
  }, [text, others]);
  const more = (): void => {
    if (search.value !== null && !isBusy.value) void look(search.value);
  };
  return { search: search.value, isBusy: isBusy.value, problem: problem.value, more };
}

function messageOf(error: unknown): string {
  if (error instanceof ApiError && error.status === 403)
    return "Prompts and answers are searched for the operator only.";
  return error instanceof Error ? error.message : String(error);
}
