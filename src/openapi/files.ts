/** Files and uploads of OpenAI's API, whose own document describes their fields. */
import { z, type RouteConfig } from "@hono/zod-openapi";
import { FILES_PAGE_MAX } from "../limits.ts";
import { answerHeaders, guarded, header, idParameter, json, jsonBody, whole } from "./parts.ts";

const opaque = z.looseObject({});
const text = { type: "string" as const };
const bytes = { type: "string" as const, format: "binary" };

/** A form with one file in it. */
const form = (name: string, fields: Record<string, object>, required: string[]) => ({
  body: {
    required: true,
    content: {
      "multipart/form-data": {
        schema: { type: "object" as const, properties: { [name]: bytes, ...fields }, required: [name, ...required] },
      },
    },
  },
});

const query = (name: string, description: string, schema: object) => ({
  name,
  in: "query" as const,
  required: false,
  description,
  schema,
});

const page = json(
  z.looseObject({
    object: z.literal("list"),
    data: z.array(opaque),
    first_id: z.string().nullable(),
    last_id: z.string().nullable(),
    has_more: z.boolean(),
  }),
  "One page",
);

const content = { "application/octet-stream": { schema: bytes } };
const contentHeaders = answerHeaders({
  "accept-ranges": "bytes",
  "content-disposition": "The file's name",
  etag: "Names this content; for `if-range`",
});

export const files: RouteConfig[] = [
  guarded({
    method: "post",
    path: "/v1/files",
    summary: "Uploads a file, as it streams in; its fields may come in any order",
    request: form(
      "file",
      { purpose: text, "expires_after[anchor]": text, "expires_after[seconds]": { type: "integer" } },
      ["purpose"],
    ),
    responses: { 200: json(opaque, "The file") },
  }),
  guarded({
    method: "get",
    path: "/v1/files",
    summary: "The run's files",
    parameters: [
      whole("limit", "Files per page", { minimum: 1, maximum: FILES_PAGE_MAX }),
      query("after", "The last id of the page before", text),
      query("order", "By creation; default `desc`", { ...text, enum: ["asc", "desc"] }),
      query("purpose", "Only files of this purpose", text),
    ],
    responses: { 200: page },
  }),
  guarded({
    method: "get",
    path: "/v1/files/{id}",
    summary: "One file",
    parameters: [idParameter],
    responses: { 200: json(opaque, "The file") },
  }),
  guarded({
    method: "delete",
    path: "/v1/files/{id}",
    summary: "Deletes a file; a batch that reads it goes on",
    parameters: [idParameter],
    responses: { 200: json(opaque, "It is deleted") },
  }),
  guarded({
    method: "get",
    path: "/v1/files/{id}/content",
    summary: "A file's content, in whole or in part",
    parameters: [
      idParameter,
      header("range", "Which bytes; a single range"),
      header("if-range", "The etag for which the range is meant"),
    ],
    responses: {
      200: { description: "The content", content, headers: contentHeaders },
      206: { description: "The range of it", content, headers: contentHeaders },
    },
  }),
  guarded({
    method: "post",
    path: "/v1/uploads",
    summary: "Begins an upload of a file in parts",
    request: jsonBody(opaque),
    responses: { 200: json(opaque, "The upload") },
  }),
  guarded({
    method: "post",
    path: "/v1/uploads/{id}/parts",
    summary: "Adds a part of at most 64 MiB; parts may come at once",
    parameters: [idParameter],
    request: form("data", {}, []),
    responses: { 200: json(opaque, "The part") },
  }),
  guarded({
    method: "post",
    path: "/v1/uploads/{id}/complete",
    summary: "Makes the file of the parts named, in that order",
    parameters: [idParameter],
    request: jsonBody(opaque),
    responses: { 200: json(opaque, "The upload, with its file") },
  }),
  guarded({
    method: "post",
    path: "/v1/uploads/{id}/cancel",
    summary: "Gives an upload up, with its parts",
    parameters: [idParameter],
    responses: { 200: json(opaque, "The upload") },
  }),
];
