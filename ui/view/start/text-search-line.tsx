/** How far prompts and answers are searched, below the search field, and a button that goes on. */
import { searchedText } from "../../model/runs/text-search.ts";
import type { Searching } from "./use-text-search.ts";

export function TextSearchLine({ search, isBusy, problem, more }: Searching) {
  if (search === null && !isBusy && problem === null) return null;
  const hasMore = search !== null && search.cursor !== null;
  return (
    <p class="searched dim" aria-live="polite">
      {problem ?? (search === null ? "Searching prompts and answers …" : searchedText(search))}
      {hasMore && " "}
      {hasMore && (
        <button type="button" disabled={isBusy} onClick={more}>
          {isBusy ? "Searching …" : "Search older runs"}
        </button>
      )}
    </p>
  );
}
