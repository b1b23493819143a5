/** Files and uploads of OpenAI's API. OpenAI's reference describes their fields. */
import type { RouteConfig } from "@asteasolutions/zod-to-openapi";
import * as z from "zod";
import { FILE_PURPOSES } from "../batch/files.ts";
import { uploadCompleteBody, uploadCreateBody } from "../batch/uploads.ts";
import { FILE_EXPIRES_S_MAX, FILE_EXPIRES_S_MIN, FILES_PAGE_MAX } from "../limits.ts";
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

/** Of a batch's files, and of others. */
const content = { "application/jsonl": { schema: bytes }, "application/octet-stream": { schema: bytes } };
const contentHeaders = answerHeaders({
  "accept-ranges": "bytes",
  "content-disposition": "The file's name",
  etag: "Identifies this content, for `if-range`",
});

export const files: RouteConfig[] = [
  guarded({
    method: "post",
    path: "/v1/files",
    summary: "Uploads a file; the form's fields may come in any order",
    request: form(
      "file",
      {
        purpose: { ...text, enum: [...FILE_PURPOSES] },
        "expires_after[anchor]": { ...text, enum: ["created_at"] },
        "expires_after[seconds]": { type: "integer", minimum: FILE_EXPIRES_S_MIN, maximum: FILE_EXPIRES_S_MAX },
      },
      ["purpose"],
    ),
    responses: { 200: json(opaque, "The file") },
  }),
  guarded({
    method: "get",
    path: "/v1/files",
    summary: "Lists the run's files",
    parameters: [
      whole("limit", "Files per page", { minimum: 1, maximum: FILES_PAGE_MAX }),
      query("after", "Last id of the previous page", text),
      query("order", "Order of creation; default `desc`", { ...text, enum: ["asc", "desc"] }),
      query("purpose", "Return only files with this purpose", text),
    ],
    responses: { 200: page },
  }),
  guarded({
    method: "get",
    path: "/v1/files/{id}",
    summary: "Describes a file",
    parameters: [idParameter],
    responses: { 200: json(opaque, "The file") },
  }),
  guarded({
    method: "delete",
    path: "/v1/files/{id}",
    summary: "Deletes a file; a batch that is reading it continues",
    parameters: [idParameter],
    responses: { 200: json(opaque, "Confirms the deletion") },
  }),
  guarded({
    method: "get",
    path: "/v1/files/{id}/content",
    summary: "Returns a file's content, or a range of it",
    parameters: [
      idParameter,
      header("range", "A single byte range"),
      header("if-range", "ETag of the content that the range refers to"),
    ],
    responses: {
      200: { description: "The content", content, headers: contentHeaders },
      206: { description: "The requested range", content, headers: contentHeaders },
    },
  }),
  guarded({
    method: "post",
    path: "/v1/uploads",
    summary: "Starts an upload of a file in parts",
    request: jsonBody(uploadCreateBody),
    responses: { 200: json(opaque, "The upload") },
  }),
  guarded({
    method: "post",
    path: "/v1/uploads/{id}/parts",
    summary: "Adds a part of at most 64 MiB; parts may be sent in parallel",
    parameters: [idParameter],
    request: form("data", {}, []),
    responses: { 200: json(opaque, "The part") },
  }),
  guarded({
    method: "post",
    path: "/v1/uploads/{id}/complete",
    summary: "Creates the file from the listed parts, in the listed order",
    parameters: [idParameter],
    request: jsonBody(uploadCompleteBody),
    responses: { 200: json(opaque, "The upload, with its file") },
  }),
  guarded({
    method: "post",
    path: "/v1/uploads/{id}/cancel",
    summary: "Cancels an upload and deletes its parts",
    parameters: [idParameter],
    responses: { 200: json(opaque, "The upload") },
  }),
];
