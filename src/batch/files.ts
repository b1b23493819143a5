/** Files: the fields of an upload, the document of a file, and its name. */
import {
  FILE_BYTES_MAX,
  BATCH_FILE_BYTES_MAX,
  FILE_EXPIRES_S_MAX,
  FILE_EXPIRES_S_MIN,
  NAME_CHARS_MAX,
} from "../limits.ts";
import {
  missing,
  outOfRange,
  refusal,
  refused,
  unsupported,
  wrongType,
  type ApiRefusal,
  type Checked,
} from "./refusal.ts";

/** Purposes that a client may name, in the order of OpenAI's list. */
export const FILE_PURPOSES = ["assistants", "batch", "fine-tune", "vision", "user_data", "evals"] as const;

export type UploadPurpose = (typeof FILE_PURPOSES)[number];

/** Purposes of files: those, and the purpose of what a batch writes. */
export type FilePurpose = UploadPurpose | "batch_output";

/** The record of a file. Times are unix seconds; `expiresAtS` null = it does not expire. */
export type FileRecord = {
  id: string;
  bytes: number;
  createdAtS: number;
  expiresAtS: number | null;
  filename: string;
  purpose: FilePurpose;
};

export type FileDocument = {
  id: string;
  object: "file";
  bytes: number;
  created_at: number;
  expires_at: number | null;
  filename: string;
  purpose: FilePurpose;
  /** A file can be used as soon as it exists; clients wait for this status. */
  status: "processed";
  status_details: null;
};

/** The document of a file. */
export function fileDocument(file: FileRecord): FileDocument {
  return {
    id: file.id,
    object: "file",
    bytes: file.bytes,
    created_at: file.createdAtS,
    expires_at: file.expiresAtS,
    filename: file.filename,
    purpose: file.purpose,
    status: "processed",
    status_details: null,
  };
}

/** The answer to a file's deletion. */
export function deletedDocument(id: string): { id: string; object: "file"; deleted: true } {
  return { id, object: "file", deleted: true };
}

/** Whether a file has expired. */
export function isExpired({ expiresAtS }: Pick<FileRecord, "expiresAtS">, nowS: number): boolean {
  return expiresAtS !== null && nowS >= expiresAtS;
}

/** The file does not exist, has expired, or belongs to another run. */
export function noFile(id: string): ApiRefusal {
  return refusal({ message: `No such File object: ${id}`, param: "id", code: null }, 404);
}

/** The fields of an upload's form besides the file; `expiresAfterS` null = the default life. */
export type FileForm = { purpose: UploadPurpose; expiresAfterS: number | null };

/** Reads the text fields of an upload, which may come before or after the file. */
export function parseFileForm(fields: ReadonlyMap<string, string>): Checked<FileForm> {
  const requested = fields.get("purpose");
  if (requested === undefined) return refused(missing("purpose"));
  const purpose = FILE_PURPOSES.find((known) => known === requested);
  if (purpose === undefined) return refused(unsupported("purpose", requested, FILE_PURPOSES));
  const expiry = parseExpiry(fields.get("expires_after[anchor]"), fields.get("expires_after[seconds]"));
  return expiry.ok ? { ok: true, value: { purpose, expiresAfterS: expiry.value } } : expiry;
}

function parseExpiry(anchor: string | undefined, seconds: string | undefined): Checked<number | null> {
  if (anchor === undefined && seconds === undefined) return { ok: true, value: null };
  if (anchor === undefined) return refused(missing("expires_after.anchor"));
  if (anchor !== "created_at") return refused(unsupported("expires_after.anchor", anchor, ["created_at"]));
  if (seconds === undefined) return refused(missing("expires_after.seconds"));
  if (!/^-?[0-9]{1,15}$/.test(seconds)) return refused(wrongType("expires_after.seconds", "an integer", seconds));
  const afterS = Number(seconds);
  if (afterS < FILE_EXPIRES_S_MIN || afterS > FILE_EXPIRES_S_MAX) {
    return refused(outOfRange("expires_after.seconds", afterS, { min: FILE_EXPIRES_S_MIN, max: FILE_EXPIRES_S_MAX }));
  }
  return { ok: true, value: afterS };
}

/** Why a file of that size cannot have that purpose; null if it can. */
export function sizeRefusal(bytes: number, purpose: UploadPurpose): ApiRefusal | null {
  const bytesMax = purpose === "batch" ? BATCH_FILE_BYTES_MAX : FILE_BYTES_MAX;
  return bytes > bytesMax ? refusal({ message: "File is too large.", param: null, code: null }) : null;
}

/** The name that OpenAI's clients send for a file without a name. */
const UNNAMED = "upload";

/**
 * The name of a file as in its form, for lists and downloads. It proves nothing about the content: clients that upload
 * bytes send `upload` or `unknown_file`, or no name.
 */
export function fileName(given: string | undefined): string {
  const name = (given ?? "")
    .toWellFormed()
    .replace(/\p{Cc}/gu, "")
    .trim();
  return name === "" ? UNNAMED : [...name].slice(0, NAME_CHARS_MAX).join("");
}
