/**
 * A rule of a group as requests name it: what of a request asks for it, and whether that can be asked. The rule itself, by the same name,
 * is src/run/rules's.
 */
import type { RequestedRules } from "../../run/rules/table.ts";
import type { Parsed } from "../errors.ts";

/** What a request asks its group for by fields of their own. `on_error` is among the options of a graph, and has a default. */
export type AskedRules = Omit<RequestedRules, "onError">;

/** `read` finds what a request asks for by the fields in `Sent`; nothing, if it does not name the rule. */
export type NamedRule<Sent> = { read: (sent: Sent) => Parsed<AskedRules> };
