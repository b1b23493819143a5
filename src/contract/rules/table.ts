/** The rules of groups that requests name, batches and graphs alike. */
import type * as z from "zod";
import type { Parsed } from "../errors.ts";
import { atLeastRule } from "./at-least.ts";
import type { AskedRules, NamedRule } from "./rule.ts";
import { stopFields, stopRule } from "./stop-when.ts";
import { atFirstUse } from "../../at-first-use.ts";

/** Their fields that mean the same for a batch and a graph. */
export const ruleFields = atFirstUse(() => ({ ...stopFields() }));

type Sent = z.infer<z.ZodObject<ReturnType<typeof ruleFields>>> & Parameters<typeof atLeastRule.read>[0];

const RULES: readonly NamedRule<Sent>[] = [stopRule, atLeastRule];

/** What a request asks its group for, or the first reason why it cannot. */
export function askedRules(sent: Sent): Parsed<AskedRules> {
  let asked: AskedRules = {};
  for (const { read } of RULES) {
    const rule = read(sent);
    if (!rule.ok) return rule;
    asked = { ...asked, ...rule.value };
  }
  return { ok: true, value: asked };
}
