/** The routes of contexts. */
import { contextBody, contextDeleted, contextReply, contextsReply } from "../contexts/contexts.ts";
import { CONTEXTS_PAGE_DEFAULT, CONTEXTS_PAGE_MAX, CONTEXT_BYTES_MAX, NAME_CHARS_MAX } from "../../limits.ts";
import { idParameter, json, whole, someText } from "./parts.ts";
import { CLIENTS, family } from "./record.ts";

const query = (name: string, description: string, bounds: { minLength?: number; maxLength?: number } = {}) => ({
  name,
  in: "query" as const,
  required: false,
  description,
  schema: { type: "string" as const, ...bounds },
});

export const contexts = family("Contexts", {
  "POST /contexts": {
    auth: CLIENTS,
    guide: "docs/contexts.md",
    bound: CONTEXT_BYTES_MAX,
    summary: "Stores a text, so that calls of the run can refer to it. The same text has the same id",
    parameters: [
      query("name", "Its name, if the body is the text itself", { minLength: 1, maxLength: NAME_CHARS_MAX }),
    ],
    request: {
      body: {
        required: true,
        content: { "application/json": { schema: contextBody }, "text/plain": { schema: someText } },
      },
    },
    replies: {
      200: json(contextReply, "The run had stored this text before"),
      201: json(contextReply, "The context"),
    },
  },
  "GET /contexts": {
    auth: CLIENTS,
    guide: "docs/contexts.md",
    summary: "Lists the run's contexts, newest first",
    parameters: [
      whole("limit", `Contexts per page; default ${CONTEXTS_PAGE_DEFAULT}`, { minimum: 1, maximum: CONTEXTS_PAGE_MAX }),
      query("after", "Last id of the previous page", { maxLength: 100 }),
    ],
    replies: { 200: json(contextsReply, "One page") },
  },
  "GET /contexts/:id": {
    auth: CLIENTS,
    guide: "docs/contexts.md",
    summary: "Describes a context",
    parameters: [idParameter],
    replies: { 200: json(contextReply, "The context") },
  },
  "DELETE /contexts/:id": {
    auth: CLIENTS,
    guide: "docs/contexts.md",
    summary: "Deletes a context at once. Calls that refer to it and are not sent yet fail with `not_found`, at no cost",
    parameters: [idParameter],
    replies: { 200: json(contextDeleted, "Confirms the deletion") },
  },
});
