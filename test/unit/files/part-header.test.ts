/** The boundary as a request's Content-Type names it. */
import { describe, expect, it } from "vitest";
import { boundaryOf } from "../../../src/files/part-header.ts";

describe("a form's boundary", () => {
  it.each([
    ["multipart/form-data; boundary=abc", "abc"],
    ['Multipart/Form-Data; charset=utf-8; Boundary="a b;c=d"', "a b;c=d"],
    [
      "multipart/form-data;boundary=----WebKitFormBoundary7MA4YWxkTrZu0gW ; x=y",
      "----WebKitFormBoundary7MA4YWxkTrZu0gW",
    ],
    [`multipart/form-data; boundary=${"b".repeat(70)}`, "b".repeat(70)],
  ])("is read from %s", (contentType, boundary) => {
    expect(boundaryOf(contentType)).toEqual({ ok: true, boundary });
  });

  it.each([
    "multipart/form-data",
    "multipart/form-data; boundary=",
    'multipart/form-data; boundary="a "',
    `multipart/form-data; boundary=${"b".repeat(71)}`,
  ])("is missed in %s", (contentType) => {
    expect(boundaryOf(contentType)).toMatchObject({
      ok: false,
      reason: { reason: "invalid_request", message: expect.stringMatching(/boundary/) },
    });
  });

  it.each([null, "", "application/json", "multipart/mixed; boundary=abc"])("is refused in %s", (contentType) => {
    expect(boundaryOf(contentType)).toEqual({
      ok: false,
      reason: { reason: "unsupported_media_type", got: contentType ?? "", expected: "multipart/form-data" },
    });
  });
});
