/** Files and uploads of OpenAI's API. OpenAI's reference describes their fields. */
import * as z from "zod";
import { FILE_PURPOSES } from "../../batch/files.ts";
import { uploadCompleteBody, uploadCreateBody } from "../../batch/uploads.ts";
import {
  BATCH_BODY_BYTES_MAX,
  FILES_PAGE_MAX,
  FILE_EXPIRES_S_MAX,
  FILE_EXPIRES_S_MIN,
  FILE_FORM_BYTES_MAX,
  PART_FORM_BYTES_MAX,
  UPLOAD_COMPLETE_BYTES_MAX,
} from "../../limits.ts";
import { answerHeaders, header, idParameter, json, jsonBody, whole } from "./parts.ts";
import { CLIENTS, family } from "./record.ts";

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

export const files = family("Files", {
  "POST /v1/files": {
    auth: CLIENTS,
    guide: "docs/batch-api.md",
    bound: FILE_FORM_BYTES_MAX,
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
    replies: { 200: json(opaque, "The file") },
  },
  "GET /v1/files": {
    auth: CLIENTS,
    guide: "docs/batch-api.md",
    summary: "Lists the run's files",
    parameters: [
      whole("limit", "Files per page", { minimum: 1, maximum: FILES_PAGE_MAX }),
      query("after", "Last id of the previous page", text),
      query("order", "Order of creation; default `desc`", { ...text, enum: ["asc", "desc"] }),
      query("purpose", "Return only files with this purpose", text),
    ],
    replies: { 200: page },
  },
  "GET /v1/files/:id": {
    auth: CLIENTS,
    guide: "docs/batch-api.md",
    summary: "Describes a file",
    parameters: [idParameter],
    replies: { 200: json(opaque, "The file") },
  },
  "DELETE /v1/files/:id": {
    auth: CLIENTS,
    guide: "docs/batch-api.md",
    summary: "Deletes a file; a batch that is reading it continues",
    parameters: [idParameter],
    replies: { 200: json(opaque, "Confirms the deletion") },
  },
  "GET /v1/files/:id/content": {
    auth: CLIENTS,
    guide: "docs/batch-api.md",
    summary: "Returns a file's content, or a range of it",
    parameters: [
      idParameter,
      header("range", "A single byte range"),
      header("if-range", "ETag of the content that the range refers to"),
    ],
    replies: {
      200: { description: "The content", content, headers: contentHeaders },
      206: { description: "The requested range", content, headers: contentHeaders },
    },
  },
  "POST /v1/uploads": {
    auth: CLIENTS,
    guide: "docs/batch-api.md",
    bound: BATCH_BODY_BYTES_MAX,
    summary: "Starts an upload of a file in parts",
    request: jsonBody(uploadCreateBody),
    replies: { 200: json(opaque, "The upload") },
  },
  "POST /v1/uploads/:id/parts": {
    auth: CLIENTS,
    guide: "docs/batch-api.md",
    bound: PART_FORM_BYTES_MAX,
    summary: "Adds a part of at most 64 MiB; parts may be sent in parallel",
    parameters: [idParameter],
    request: form("data", {}, []),
    replies: { 200: json(opaque, "The part") },
  },
  "POST /v1/uploads/:id/complete": {
    auth: CLIENTS,
    guide: "docs/batch-api.md",
    bound: UPLOAD_COMPLETE_BYTES_MAX,
    summary: "Creates the file from the listed parts, in the listed order",
    parameters: [idParameter],
    request: jsonBody(uploadCompleteBody),
    replies: { 200: json(opaque, "The upload, with its file") },
  },
  "POST /v1/uploads/:id/cancel": {
    auth: CLIENTS,
    guide: "docs/batch-api.md",
    opensNothing: true,
    summary: "Cancels an upload and deletes its parts",
    parameters: [idParameter],
    replies: { 200: json(opaque, "The upload") },
  },
});
