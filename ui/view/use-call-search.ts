/** Searches in prompts, answers and errors of the calls of a run once the reader's text has rested. */
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { ApiError, type Api } from "../api.ts";
import { callsFound, noCallSearch, type CallSearch } from "../model/call-search.ts";
import { SEARCHED_CHARS_MIN } from "../model/runs/text-search.ts";

/** A look reads up to 10,000 calls of the run, so a reader who still types waits, ms. */
const REST_MS = 400;
/** Looks that follow each other without being asked for. */
const LOOKS_MAX = 10;

/** `search` null = no text is searched. `problem`: why the search did not go on. */
export type CallSearching = { search: CallSearch | null; isBusy: boolean; problem: string | null; more: () => void };

/** `api` null = there is no gateway to ask. */
export function useCallSearch(api: Api | null, runId: string, typed: string): CallSearching {
  const search = useSignal<CallSearch | null>(null);
  const isBusy = useSignal(false);
  const problem = useSignal<string | null>(null);
  /** Counts what was searched: an answer to an earlier text is dropped. */
  const texts = useRef(0);
  const text = typed.trim();
  const look = async (begun: CallSearch): Promise<void> => {
    if (api === null) return;
    const ofText = texts.current;
    isBusy.value = true;
    problem.value = null;
    try {
      let now = begun;
      for (let looks = 0; looks < LOOKS_MAX && (looks === 0 || now.cursor !== null); looks += 1) {
        const query = new URLSearchParams({ search: text, ...(now.cursor === null ? {} : { cursor: now.cursor }) });
        now = callsFound(now, await api.json(`/runs/${encodeURIComponent(runId)}/search?${query.toString()}`));
        if (texts.current !== ofText) return;
        search.value = now;
      }
    } catch (error) {
      if (texts.current === ofText) problem.value = messageOf(error);
    }
    if (texts.current === ofText) isBusy.value = false;
  };
  useEffect(() => {
    texts.current += 1;
    search.value = null;
    isBusy.value = false;
    problem.value = null;
    if (api === null || text.length < SEARCHED_CHARS_MIN) return;
    isBusy.value = true;
    const due = setTimeout(() => void look(noCallSearch()), REST_MS);
    return () => clearTimeout(due);
  }, [api, runId, text]);
  const more = (): void => {
    if (search.value !== null && !isBusy.value) void look(search.value);
  };
  return { search: search.value, isBusy: isBusy.value, problem: problem.value, more };
}

function messageOf(error: unknown): string {
  if (error instanceof ApiError && error.status === 403)
    return "This key does not open prompts and answers: names, models and errors are searched.";
  return error instanceof Error ? error.message : String(error);
}
