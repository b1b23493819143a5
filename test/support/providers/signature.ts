/** Checks a request's Signature Version 4 with Node's own crypto, as AWS documents it: not by the library that signs. */
import { createHash, createHmac } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";

export type SignedRequest = { method: string; path: string; headers: IncomingHttpHeaders; body: Buffer };

const FORM =
  /^AWS4-HMAC-SHA256 Credential=([^/]+)\/((\d{8})\/([^/]+)\/([^/]+)\/aws4_request), SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/;

const sha256 = (data: string | Buffer): string => createHash("sha256").update(data).digest("hex");
const hmac = (key: string | Buffer, data: string): Buffer => createHmac("sha256", key).update(data).digest();

/** Whether a request is signed with this key for this scope. */
export function isSigned(
  request: SignedRequest,
  key: { id: string; secret: string; region: string; service: string },
): boolean {
  const { method, path, headers, body } = request;
  const match = FORM.exec(headers.authorization ?? "");
  if (match === null) return false;
  const [, id = "", scope = "", day = "", region = "", service = "", names = "", signature = ""] = match;
  if (id !== key.id || region !== key.region || service !== key.service || !names.split(";").includes("host"))
    return false;
  const url = new URL(path, "http://host");
  const signedHeaders = names.split(";").map((name) => `${name}:${String(headers[name] ?? "").trim()}\n`);
  const hashed = headers["x-amz-content-sha256"] ?? sha256(body);
  if (hashed !== sha256(body)) return false;
  const canonical = [method, url.pathname, url.searchParams.toString(), signedHeaders.join(""), names, hashed].join(
    "\n",
  );
  const stamp = String(headers["x-amz-date"]);
  const toSign = ["AWS4-HMAC-SHA256", stamp, scope, sha256(canonical)].join("\n");
  const signing = [day, region, service, "aws4_request"].reduce<string | Buffer>(
    (from, part) => hmac(from, part),
    `AWS4${key.secret}`,
  );
  return createHmac("sha256", signing).update(toSign).digest("hex") === signature;
}
