/** Refusals name the field, say what is there and what is expected, in words that need no knowledge of the schema's language. */
import { expect, it } from "vitest";
import * as z from "zod";
import { zodReason } from "../../../src/contract/errors.ts";

it.each([
  [z.record(z.string(), z.int()), "x", "expected a JSON object, received a text"],
  [z.strictObject({}), [], "expected a JSON object, received an array"],
  [z.string(), 3, "expected a text, received a number"],
  [z.string(), null, "expected a text, received null"],
  [z.array(z.string()), { a: 1 }, "expected an array, received a JSON object"],
  [z.boolean(), "yes", "expected true or false, received a text"],
  [z.int(), 1.5, "expected an integer, received a number that is none"],
  [z.int(), "1", "expected a number, received a text"],
  [z.int().min(1), 0, "expected a number of at least 1"],
  [z.number().max(5), 6, "expected a number of at most 5"],
  [z.number().gt(0), 0, "expected a number of more than 0"],
  [z.array(z.string()).min(1), [], "expected at least 1 item"],
  [z.array(z.string()).max(2), ["a", "b", "c"], "expected at most 2 items"],
  [z.string().min(1), "", "expected at least 1 character"],
  [z.enum(["a", "b"]), "c", 'expected one of "a"|"b"'],
  [z.string().regex(/x/, "expected the id of a group"), "y", "expected the id of a group"],
])("of a value that does not fit: %#", (schema, value, problem) => {
  const read = z.object({ field: schema }).safeParse({ field: value });
  expect(read.success || zodReason(read.error, ["items", 3])).toEqual({
    reason: "invalid_request",
    message: `items[3].field: ${problem}`,
    param: "items[3].field",
  });
});
