/** Parses PANEL: several models that answer one call, and the model that makes one answer of theirs. */
import * as z from "zod";
import { NAME_CHARS_MAX, PANEL_MEMBERS_MAX } from "../limits.ts";
import { targetOf, type ModelConfig } from "./target.ts";

/** The name under which clients ask for the panel. */
export const PANEL_MODEL = "fanout/panel";

/** Models as requests name them. */
export type Panel = { members: readonly string[]; judge: string };

/** The panel, null = none, or the path of the first wrong field and what is expected there. */
export type ParsedPanel = { ok: true; panel: Panel | null } | { ok: false; path: string; message: string };

const nameError = "must be a model such as openai/gpt-x";
const name = z.string({ error: nameError }).min(1, { error: nameError }).max(NAME_CHARS_MAX, { error: nameError });
const membersError = `must be a list of 2 to ${PANEL_MEMBERS_MAX} models`;
const panel = z.strictObject({
  panel: z
    .array(name, { error: membersError })
    .min(2, { error: membersError })
    .max(PANEL_MEMBERS_MAX, { error: membersError }),
  judge: name,
});

/** The panel that a call asks for; null = it asks for another model, or there is none. */
export function panelFor({ panel: configured }: { panel: Panel | null }, model: string | null): Panel | null {
  return model === PANEL_MODEL ? configured : null;
}

/** Parses the value of PANEL; not set = none. */
export function parsePanel(value: unknown, config: Pick<ModelConfig, "upstreams" | "routes">): ParsedPanel {
  if (value === undefined || value === null) return { ok: true, panel: null };
  const wrong = (path: readonly PropertyKey[], message: string): ParsedPanel => ({
    ok: false,
    path: ["PANEL", ...path.map(String)].join("."),
    message,
  });
  const read = panel.safeParse(value);
  if (!read.success) {
    const [issue] = read.error.issues;
    return wrong(issue?.path ?? [], issue?.message ?? "is wrong");
  }
  if (config.upstreams.some((upstream) => upstream.name === "fanout")) {
    return wrong([], `is called ${PANEL_MODEL}: give the upstream "fanout" another name`);
  }
  const { panel: members, judge } = read.data;
  const anyRun = { defaultModel: null, models: [], unpriced: "free" } as const;
  const isServed = (model: string): boolean => targetOf(model, anyRun, { ...config, defaultModel: null }).ok;
  const unserved = members.findIndex((model) => !isServed(model));
  if (unserved !== -1) return wrong(["panel", unserved], "is served by no upstream in UPSTREAMS");
  if (!isServed(judge)) return wrong(["judge"], "is served by no upstream in UPSTREAMS");
  return { ok: true, panel: { members, judge } };
}
