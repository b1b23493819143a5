import { describe, expect, it } from "vitest";
import { parseUpstreams } from "../../../../src/providers/upstreams.ts";
import { gateNameOf, underKey, upstreamAt } from "../../../../src/providers/config/keys.ts";
import { UPSTREAM_KEYS_MAX } from "../../../../src/limits.ts";
import { ownSecrets } from "../../../../src/providers/redact.ts";
import { targetOf } from "../../../../src/providers/target.ts";
import { makeUpstream } from "../make.ts";

const vars = { A: "key-of-a", B: "key-of-b", EMPTY: "" };

function parsed(fields: Record<string, unknown>, kind = "openai") {
  return parseUpstreams({ acme: { kind, base_url: "https://acme.test/v1", ...fields } }, vars);
}

const keys = [
  { name: "A", key: "key-of-a" },
  { name: "B", key: "key-of-b" },
];
const acme = makeUpstream({ apiKey: "key-of-a", keys });

describe("the keys of an upstream", () => {
  it.each(["openai", "anthropic"])("are read by the names of their secrets, for kind %s", (kind) => {
    expect(parsed({ keys: ["secret:A", "secret:B"] }, kind)).toMatchObject({
      ok: true,
      upstreams: [{ apiKey: "key-of-a", keys }],
    });
  });

  it.each([
    ["both spellings", { api_key: "secret:A", keys: ["secret:B"] }, "keys", "contradicts api_key: set one of the two"],
    ["a secret twice", { keys: ["secret:A", "secret:B", "secret:A"] }, "keys.2", "is the same secret as keys.0"],
    ["a secret that is not set", { keys: ["secret:A", "secret:EMPTY"] }, "keys.1", "reads the secret EMPTY"],
    ["a key itself", { keys: ["sk-live-123"] }, "keys.0", "must be secret: and the name of a secret"],
    ["a number", { keys: [7] }, "keys.0", "must be secret: and the name of a secret"],
    ["a text", { keys: "secret:A" }, "keys", "must be a list"],
    ["no key", { keys: [] }, "keys", "must be a list of 1 to"],
    ["a header of the key's", { keys: ["secret:A"], headers: { authorization: "x" } }, "headers.authorization", "key"],
  ])("are refused as %s, with the place and what to do", (_, fields, path, message) => {
    const refused = parsed(fields);
    expect(refused).toMatchObject({ ok: false, path: `UPSTREAMS.acme.${path}` });
    expect(refused.ok ? "" : refused.message).toContain(message);
    expect(JSON.stringify(refused)).not.toMatch(/sk-live|key-of/);
  });

  it("are as many as the bound, and no more", () => {
    const names = (count: number): string[] => Array.from({ length: count }, (_, index) => `secret:K${index}`);
    const secrets = Object.fromEntries(names(UPSTREAM_KEYS_MAX).map((name) => [name.slice(7), "k"]));
    const read = (count: number) =>
      parseUpstreams({ a: { kind: "anthropic", keys: names(count) } }, { ...secrets, [`K${UPSTREAM_KEYS_MAX}`]: "k" });
    expect(read(UPSTREAM_KEYS_MAX)).toMatchObject({ ok: true });
    expect(read(UPSTREAM_KEYS_MAX + 1)).toMatchObject({ ok: false, path: "UPSTREAMS.a.keys" });
  });

  it("are all blanked in what the upstream answers, whichever of them was sent", () => {
    expect(ownSecrets(acme)).toEqual(["key-of-a", "key-of-b"]);
    const second = underKey(acme, "B");
    expect(second).toMatchObject({ apiKey: "key-of-b" });
    expect(second === null ? [] : ownSecrets(second)).toEqual(["key-of-a", "key-of-b"]);
  });

  it("are found by the name of their gate", () => {
    expect(upstreamAt([acme], gateNameOf("acme", "B"))).toMatchObject({ name: "acme", apiKey: "key-of-b" });
    expect(upstreamAt([acme], "acme")).toMatchObject({ apiKey: "key-of-a" });
    expect([upstreamAt([acme], "acme#C"), upstreamAt([acme], "other")]).toEqual([null, null]);
  });

  it("are a choice of targets, each with a gate of its own, and without a key in them", () => {
    const rules = { defaultModel: null, models: [], unpriced: "free" } as const;
    const resolved = targetOf("acme/m", rules, { upstreams: [acme], defaultModel: null });
    const target = resolved.ok ? resolved.target : null;
    const [choice] = target?.choices ?? [];
    expect(choice?.targets.map(({ gate, key, model }) => [gate, key, model])).toEqual([
      ["acme#A", "A", "m"],
      ["acme#B", "B", "m"],
    ]);
    expect(target).toMatchObject({ gate: "acme#A", key: "A" });
    expect(JSON.stringify(target)).not.toContain("key-of");
  });
});
