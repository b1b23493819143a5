/** One slot as a person looks at it: its measures, and the beginnings of its texts. */
import { cutText } from "../../providers/formats/request/prompt-head.ts";
import type { SlotView } from "../../objects/methods/groups.ts";
import { slotError, slotItem } from "./slot.ts";
import { shownWaiting } from "./waiting.ts";

/** @param promptHead The beginning of the prompt; null = it is not stored. */
export function slotLook(slot: SlotView, promptHead: string | null) {
  const { json, ...item } = slotItem(slot);
  void json;
  const waiting_for = slot.waitingFor === undefined ? null : shownWaiting(slot.waitingFor);
  const result_head = slot.text === null ? null : cutText(slot.text);
  return { ...item, error: slotError(slot), waiting_for, prompt_head: promptHead, result_head };
}
