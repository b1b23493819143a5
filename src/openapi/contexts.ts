/** The routes of contexts. */
import type { RouteConfig } from "@asteasolutions/zod-to-openapi";
import { contextBody, contextDeleted, contextReply, contextsReply } from "../contract/contexts/contexts.ts";
import { CONTEXTS_PAGE_DEFAULT, CONTEXTS_PAGE_MAX, NAME_CHARS_MAX } from "../limits.ts";
import { guarded, idParameter, json, whole, someText } from "./parts.ts";

const query = (name: string, description: string, bounds: { minLength?: number; maxLength?: number } = {}) => ({
  name,
  in: "query" as const,
  required: false,
  description,
  schema: { type: "string" as const, ...bounds },
});

export const contexts: RouteConfig[] = [
  guarded({
    method: "post",
    path: "/contexts",
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
    responses: {
      200: json(contextReply, "The run had stored this text before"),
      201: json(contextReply, "The context"),
    },
  }),
  guarded({
    method: "get",
    path: "/contexts",
    summary: "Lists the run's contexts, newest first",
    parameters: [
      whole("limit", `Contexts per page; default ${CONTEXTS_PAGE_DEFAULT}`, { minimum: 1, maximum: CONTEXTS_PAGE_MAX }),
      query("after", "Last id of the previous page", { maxLength: 100 }),
    ],
    responses: { 200: json(contextsReply, "One page") },
  }),
  guarded({
    method: "get",
    path: "/contexts/{id}",
    summary: "Describes a context",
    parameters: [idParameter],
    responses: { 200: json(contextReply, "The context") },
  }),
  guarded({
    method: "delete",
    path: "/contexts/{id}",
    summary: "Deletes a context at once. Calls that refer to it and are not sent yet fail with `not_found`, at no cost",
    parameters: [idParameter],
    responses: { 200: json(contextDeleted, "Confirms the deletion") },
  }),
];
