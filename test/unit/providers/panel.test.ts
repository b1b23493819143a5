/** PANEL is parsed, or refused with the path of what is wrong. */
import { describe, expect, it } from "vitest";
import { PANEL_MEMBERS_MAX } from "../../../src/limits.ts";
import { parsePanel } from "../../../src/providers/panel.ts";
import { makeUpstream } from "./make.ts";

const upstreams = [makeUpstream({ name: "up", models: ["known"] })];
const parse = (value: unknown, named = upstreams) => parsePanel(value, { upstreams: named, routes: [] });
const members = (count: number) => Array.from({ length: count }, () => "up/a");

describe("PANEL", () => {
  it("is none if it is not set", () => {
    expect(parse(undefined)).toEqual({ ok: true, panel: null });
  });

  it("names members and a judge, as requests name models", () => {
    const panel = { members: ["up/a", "known"], judge: "up/j" };
    expect(parse({ panel: panel.members, judge: panel.judge })).toEqual({ ok: true, panel });
    expect(parse({ panel: members(PANEL_MEMBERS_MAX), judge: "up/j" }).ok).toBe(true);
  });

  it.each([
    ["PANEL", "text"],
    ["PANEL.panel", { panel: ["up/a"], judge: "up/j" }],
    ["PANEL.panel", { panel: members(PANEL_MEMBERS_MAX + 1), judge: "up/j" }],
    ["PANEL.panel.1", { panel: ["up/a", ""], judge: "up/j" }],
    ["PANEL.panel.1", { panel: ["up/a", "unknown"], judge: "up/j" }],
    ["PANEL.panel.0", { panel: ["fanout/panel", "up/a"], judge: "up/j" }],
    ["PANEL.judge", { panel: members(2) }],
    ["PANEL.judge", { panel: members(2), judge: "unknown" }],
  ])("is refused at %s: %j", (path, value) => {
    expect(parse(value)).toMatchObject({ ok: false, path });
  });

  it("leaves the name fanout to the gateway", () => {
    const named = [...upstreams, makeUpstream({ name: "fanout" })];
    expect(parse({ panel: members(2), judge: "up/j" }, named)).toMatchObject({ ok: false, path: "PANEL" });
  });
});
