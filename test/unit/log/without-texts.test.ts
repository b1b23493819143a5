/** Lines for viewers: labels of a call stay if they are numbers, and go if they are texts. */
import { expect, it } from "vitest";
import type { EventLine } from "../../../src/log/events.ts";
import { LABEL_NAMES } from "../../../src/labels.ts";
import { withoutTexts } from "../../../src/log/without-texts.ts";

const SKIPPED = {
  event: "slot_skipped",
  index: 0,
  callId: null,
  reason: { reason: "cancelled", message: "by the test" },
} as const;

function shown(fields: object): unknown {
  const json = JSON.stringify({ event_type: "slot_skipped", index: 0, ...fields });
  const line: EventLine = { seq: 1, type: "slot_skipped", json, event: { atMs: 0, group: "pg-1", ...SKIPPED } };
  return JSON.parse(withoutTexts(line).json);
}

it.each(LABEL_NAMES)("the label %s is left out if it is a text, and stays if it is a number", (name) => {
  expect(shown({ [name]: "a secret" })).toEqual({ event_type: "slot_skipped", index: 0 });
  expect(shown({ [name]: 3, item_id: "a secret", message: "a secret" })).toEqual({
    ...{ event_type: "slot_skipped", index: 0, [name]: 3 },
    message: null,
  });
});
