/** The table of gateways that the bench compares with: what it installs is pinned, and what it configures is nobody's. */
import { describe, expect, it } from "vitest";
import { requirementsOf } from "../../../bench/peers/environment.ts";
import { PEER_KEY } from "../../../bench/peers/peer.ts";
import { PEER_NAMES, PEERS, peersIn } from "../../../bench/peers/table.ts";
import { CATALOGUE_MODEL, MODEL } from "../../../bench/load/prompts.ts";

const place = { upstreamUrl: "http://127.0.0.1:9100", port: 4000 } as const;
const budget = { usd: 0.05, prices: { input: 10, output: 50 } };

describe.each(PEER_NAMES)("%s", (name) => {
  const peer = PEERS[name];

  it("is installed in one version, and so is all that is named beside it", () => {
    for (const requirement of requirementsOf(peer.install))
      expect(requirement).toMatch(/^[a-z][a-z0-9-]*(\[[a-z]+\])?==\d+\.\d+\.\d+$/);
  });

  it("has no key but the bench's and no path of a machine in its configuration", () => {
    for (const each of [null, budget]) {
      const text = peer.config({ ...place, budget: each });
      expect(text.replaceAll(PEER_KEY, "")).not.toMatch(/\b(sk|fgw|exp_vk)[-_]\w/);
      expect(text).not.toMatch(/\/(home|root|tmp|work|usr|opt|var)\//);
    }
  });

  it("names a model of as many bytes as the bench's", () => {
    expect([MODEL, CATALOGUE_MODEL]).toContain(peer.model);
    expect(peer.model).toHaveLength(MODEL.length);
  });

  it("configures a budget if it has one, and nothing of one otherwise", () => {
    const without = peer.config({ ...place, budget: null });
    const withBudget = peer.config({ ...place, budget });
    expect(withBudget === without).toBe(peer.budget === "none");
  });
});

describe("--peers", () => {
  it("takes all peers, or those of a list with commas", () => {
    expect(peersIn(undefined)).toEqual([]);
    expect(peersIn("all")).toEqual(PEER_NAMES);
    expect(peersIn("ferrogw,envoy")).toEqual(["ferrogw", "envoy"]);
  });

  it("refuses a name that is no peer's and lists those that are", () => {
    expect(() => peersIn("envoy,bifrost")).toThrow(/^no peer bifrost; there are .*ferrogw/);
    expect(() => peersIn("toString")).toThrow("no peer toString");
  });
});
