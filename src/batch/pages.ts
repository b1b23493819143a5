/**
 * Lists of files and batches in pages. The cursor `after` is the id of the last item of the page before. A store reads one
 * row more than `limit`, so that `listPage` knows whether there are more.
 */
import { BATCHES_PAGE_DEFAULT, BATCHES_PAGE_MAX, FILES_PAGE_MAX, NAME_CHARS_MAX } from "../limits.ts";
import { outOfRange, refused, tooLong, unsupported, wrongType, type Checked, type Fault } from "./refusal.ts";

export type PageQuery = { limit: number; after: string | null };

/**
 * A page of the batches whose ids begin so, OpenAI's or Anthropic's: behind `after`, or, newest first all the same, those just before
 * `before`.
 */
export type BatchesQuery = PageQuery & { prefix: "batch_" | "msgbatch_"; before?: string | null };

/** `purpose` null = all. Files of the same second are in the order of their creation, or its reverse. */
export type FilesQuery = PageQuery & { order: "asc" | "desc"; purpose: string | null };

export type ListPage<T> = {
  object: "list";
  data: readonly T[];
  first_id: string | null;
  last_id: string | null;
  has_more: boolean;
};

/** One page; `rows` are those after the cursor in the list's order, `limit` + 1 of them if there are that many. */
export function listPage<T extends { id: string }>(rows: readonly T[], limit: number): ListPage<T> {
  const data = rows.slice(0, limit);
  return {
    object: "list",
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: rows.length > limit,
  };
}

type Query = Readonly<Record<string, string | undefined>>;

/** The query of `GET /v1/batches`, newest first. */
export function parseBatchesQuery(query: Query): Checked<PageQuery> {
  return parsePage(query, BATCHES_PAGE_DEFAULT, BATCHES_PAGE_MAX);
}

/** The query of `GET /v1/files`. A purpose that no file has gives an empty list. */
export function parseFilesQuery(query: Query): Checked<FilesQuery> {
  const page = parsePage(query, FILES_PAGE_MAX, FILES_PAGE_MAX);
  if (!page.ok) return page;
  const { order = "desc", purpose = null } = query;
  if (order !== "asc" && order !== "desc") return refused(unsupported("order", order, ["asc", "desc"]));
  return { ok: true, value: { ...page.value, order, purpose } };
}

/** The cursor names an item that is not in the list, or not any more. */
export function noSuchCursor(after: string): Fault {
  return {
    message: `Invalid 'after': no item with id '${after}' in this list.`,
    param: "after",
    code: "invalid_value",
  };
}

function parsePage({ limit, after }: Query, limitDefault: number, limitMax: number): Checked<PageQuery> {
  const requested = limit === undefined ? limitDefault : /^-?[0-9]{1,9}$/.test(limit) ? Number(limit) : null;
  if (requested === null) return refused(wrongType("limit", "an integer", limit));
  if (requested < 1 || requested > limitMax) return refused(outOfRange("limit", requested, { min: 1, max: limitMax }));
  if (after !== undefined && after.length > NAME_CHARS_MAX) return refused(tooLong("after", after, NAME_CHARS_MAX));
  return { ok: true, value: { limit: requested, after: after === undefined || after === "" ? null : after } };
}
