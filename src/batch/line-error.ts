/** The errors for which a batch's file is refused, with the codes and words of OpenAI's API. */
import {
  BATCH_EMBEDDING_INPUTS_MAX,
  BATCH_FILE_BYTES_MAX,
  BATCH_LINE_BYTES_MAX,
  BATCH_LINES_MAX,
  CUSTOM_IDS_CHARS_MAX,
} from "../limits.ts";
import { JSON_MEMBERS_MAX } from "../text/json/scan.ts";

/** An entry of a batch's `errors.data`; `line` counts from 1, null = the file as a whole. */
export type LineError = { code: string; message: string; param: string | null; line: number | null };

/** An entry without its line. */
export type LineFault = Omit<LineError, "line">;

const fault = (code: string, param: string | null, message: string): LineFault => ({ code, message, param });

/** Faults of a line. */
export const NOT_JSON = fault("invalid_json_line", null, "This line is not parseable as valid JSON.");
export const NOT_AN_OBJECT = fault(
  "invalid_json_line",
  null,
  `This line is not a JSON object of at most ${JSON_MEMBERS_MAX} fields.`,
);
export const LINE_TOO_LONG = fault(
  "invalid_request",
  null,
  `This line is too long: at most ${BATCH_LINE_BYTES_MAX} bytes are accepted.`,
);
export const WRONG_URL = fault(
  "invalid_url",
  "url",
  "The URL provided for this request does not match the batch endpoint.",
);
export const DUPLICATE_ID = fault(
  "duplicate_custom_id",
  "custom_id",
  "The custom_id for this request is a duplicate of another request. The custom_id parameter must be unique for each request in a batch.",
);
export const NO_MODEL = fault("invalid_request", "body.model", "Model parameter is required.");

export function missingField(name: string): LineFault {
  return fault("missing_required_parameter", name, `Missing required parameter: '${name}'.`);
}

/** A required field of the body is missing: "Messages parameter is required." */
export function missingInBody(name: string): LineFault {
  const title = name.charAt(0).toUpperCase() + name.slice(1);
  return fault("invalid_request", `body.${name}`, `${title} parameter is required.`);
}

export function unknownModel(model: string): LineFault {
  return fault("model_not_found", "body.model", `The provided model '${model}' is not supported by the Batch API.`);
}

/** `title` = the endpoint's name: "Chat Completions". */
export function streamed(title: string): LineFault {
  return fault("streaming_unsupported", "body.stream", `${title}: Streaming is not supported in the Batch API.`);
}

export function otherModel(model: string, first: string): LineFault {
  const message = `The model '${model}' does not match '${first}', the model of the first request. A strict batch has one model.`;
  return fault("model_mismatch", "body.model", message);
}

/** Faults of a file. */
export const EMPTY_FILE = fault(
  "empty_file",
  null,
  "The input file is empty. Please ensure that the batch contains at least one request.",
);
export const TOO_MANY_LINES = fault(
  "too_many_tasks",
  null,
  `The input file has too many requests: at most ${BATCH_LINES_MAX} are accepted.`,
);
export const TOO_MANY_INPUTS = fault(
  "too_many_tasks",
  "body.input",
  `The input file has too many embedding inputs: at most ${BATCH_EMBEDDING_INPUTS_MAX} are accepted in total.`,
);
export const IDS_TOO_LONG = fault(
  "invalid_request",
  "custom_id",
  `The custom_ids of the input file are too long: at most ${CUSTOM_IDS_CHARS_MAX} characters are accepted in total.`,
);
export const FILE_TOO_LARGE = fault(
  "invalid_request",
  "file_id",
  `The input file is too large: at most ${BATCH_FILE_BYTES_MAX} bytes are accepted.`,
);

/** The input file does not exist, or belongs to another run. */
export function noSuchFile(fileId: string): LineFault {
  const message = `Cannot find file ${fileId}, or this run does not have access to it.`;
  return fault("invalid_request", "file_id", message);
}

/** The input file was uploaded for another purpose. */
export function wrongPurpose(fileId: string, purpose: string): LineFault {
  const message = `File ${fileId} has the purpose '${purpose}'; the input of a batch needs the purpose 'batch'.`;
  return fault("invalid_request", "file_id", message);
}
