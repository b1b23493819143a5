/** The search in the texts of runs: `GET /runs?search=`, and `GET /runs/:id/search` in one of them. */
import * as z from "zod";
import { SEARCH_MATCHES_MAX, SEARCH_TEXT_CHARS_MAX, SEARCH_TEXT_CHARS_MIN } from "../limits.ts";
import { zodReason, type Parsed } from "./errors.ts";
import { strictFields } from "./strict-fields.ts";
import { atFirstUse } from "../at-first-use.ts";

/** A text that is searched, without regard to case. */
export const searchText = atFirstUse(() => z.string().min(SEARCH_TEXT_CHARS_MIN).max(SEARCH_TEXT_CHARS_MAX));

const excerpt = z.string().meta({ description: "What surrounds the text, on one line" });

/** Why a run is in the answer to a search. */
export const runMatch = atFirstUse(() =>
  z
    .object({
      where: z.enum(["id", "name", "prompt", "answer", "error"]),
      group: z
        .string()
        .nullable()
        .meta({ description: "Of a text of a call: its group; null: the run itself, or a single call" }),
      index: z.int().nullable(),
      excerpt,
    })
    .meta({ id: "RunMatch" }),
);
export type RunMatch = z.infer<ReturnType<typeof runMatch>>;

/** How far one page of a search has come. */
export const searchedRuns = atFirstUse(() =>
  z
    .object({
      runs: z.int().meta({ description: "Runs that this page has looked at" }),
      calls: z.int().meta({ description: "Calls whose texts it has looked at" }),
      older: z.int().nullable().meta({
        description:
          "Older runs that it has not looked at, and `next_cursor` goes on with; null: the list does not say",
      }),
      in_part: z.array(z.string()).meta({
        description:
          "Runs without a match of which only the newest calls were searched: `GET /runs/:id/search` goes on",
      }),
      unread_prompts: z.int().meta({ description: "Prompts of large batches that are in R2 and are not searched" }),
    })
    .meta({ id: "SearchedRuns" }),
);
export type SearchedRuns = z.infer<ReturnType<typeof searchedRuns>>;

const textMatch = atFirstUse(() =>
  z
    .object({
      where: z
        .enum(["name", "prompt", "answer", "error"])
        .meta({ description: "`name`: the id that its client gave the call" }),
      group: z.string().nullable().meta({ description: "null: a single call, which no group has" }),
      index: z.int().nullable(),
      call_id: z.string().nullable().meta({ description: "Of a single call: its name in the log" }),
      excerpt,
    })
    .meta({ id: "TextMatch" }),
);

/** `GET /runs/:id/search` */
export const runSearch = atFirstUse(() =>
  z
    .object({
      object: z.literal("list"),
      data: z.array(textMatch()).max(SEARCH_MATCHES_MAX).meta({
        description: "Calls with the text, each once: the newest group first, in it in input order, then single calls",
      }),
      calls: z.int().meta({ description: "Calls that this page has looked at" }),
      unread_prompts: searchedRuns().shape.unread_prompts,
      has_more: z.boolean(),
      next_cursor: z.string().nullable(),
    })
    .meta({ id: "RunSearch" }),
);
export type RunSearchDocument = z.infer<ReturnType<typeof runSearch>>;

export const runSearchQuery = atFirstUse(() =>
  strictFields({
    search: searchText().meta({ description: "Calls whose id, prompt, answer or error has this text" }),
    cursor: z
      .string()
      .regex(/^(g\.\d{1,15}\.\d{1,6}|l\.\d{1,15})$/, "expected the next_cursor of an earlier page")
      .optional(),
  }),
);

/** The query parameters of `GET /runs/:id/search`. */
export function parseRunSearchQuery(query: Record<string, string>): Parsed<z.infer<ReturnType<typeof runSearchQuery>>> {
  const read = runSearchQuery().safeParse(query);
  return read.success ? { ok: true, value: read.data } : { ok: false, reason: zodReason(read.error) };
}
