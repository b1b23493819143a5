/** The table of kinds: what a record promises holds for each kind, through the readers that all of them share. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Endpoint } from "../../../../src/call.ts";
import type { Upstream } from "../../../../src/providers/config/types.ts";
import { endpointUrl, relayHeaders } from "../../../../src/providers/endpoints.ts";
import { KINDS, kindOf } from "../../../../src/providers/kinds/table.ts";
import { modelsRequest } from "../../../../src/providers/models.ts";
import { parseUpstreams } from "../../../../src/providers/upstreams.ts";

const ENDPOINTS: readonly Endpoint[] = ["chat", "completions", "embeddings", "responses", "messages"];
const names = Object.keys(KINDS);

/** An upstream of a kind, with as few fields as it can have. */
function upstreamOf(kind: string): Upstream {
  const remote = kind === "openai" ? { base_url: "https://api.example/v1", api_key: "k" } : {};
  const parsed = parseUpstreams({ up: { kind, ...remote, ...(kind === "anthropic" ? { api_key: "k" } : {}) } }, {});
  const upstream = parsed.ok ? parsed.upstreams[0] : undefined;
  if (upstream === undefined) throw new Error(`${kind}: ${parsed.ok ? "nothing" : parsed.message}`);
  return upstream;
}

describe.each(names)("the kind %s", (kind) => {
  const upstream = upstreamOf(kind);
  const record = kindOf(upstream);

  it("is what its entry is parsed as", () => {
    expect(upstream.kind).toBe(kind);
  });

  it("has the endpoints of its record, and says of each other why it has it not", () => {
    for (const endpoint of ENDPOINTS) {
      const target = endpointUrl(upstream, endpoint, "m");
      const path = record.endpoints[endpoint];
      if (path !== undefined) expect(target).toEqual({ ok: true, url: `${upstream.baseUrl}${path}` });
      else expect(target).toMatchObject({ ok: false, reason: { message: `model: ${record.otherEndpoints("up")}` } });
    }
  });

  it("sends its key in its own header only, in calls and in the request for its models", () => {
    const sent = relayHeaders(upstream, () => undefined);
    const key = upstream.apiKey === null ? {} : record.keyHeaders(upstream.apiKey);
    expect(sent).toMatchObject(key);
    const carriers = ["authorization", "x-api-key"].filter((name) => name in sent);
    expect(carriers).toEqual(Object.keys(key));
    const models = modelsRequest(upstream);
    expect(models === null).toBe(record.models === null);
    if (models !== null) expect(models.headers).toMatchObject({ ...record.headers, ...key });
  });

  it("can be recorded if its record says so, and else is no kind of a cassette's upstream", () => {
    const remote = kind === "openai" ? { base_url: "https://api.example/v1" } : {};
    const parsed = parseUpstreams({ tape: { kind: "cassette", upstream: { kind, ...remote } } }, {});
    expect(parsed.ok).toBe(record.isRecordable);
    if (!parsed.ok) {
      expect(parsed.path).toBe("UPSTREAMS.tape.upstream.kind");
      const listed = names.filter((name) => KINDS[upstreamOf(name).kind].isRecordable);
      for (const name of listed) expect(parsed.message).toContain(`"${name}"`);
      expect(parsed.message).not.toContain(`"${kind}"`);
    }
  });
});

it("names all kinds to who configures another", () => {
  const listed = names.map((name) => `"${name}"`).join(", ");
  expect(parseUpstreams({ up: { kind: "other" } }, {})).toEqual({
    ok: false,
    path: "UPSTREAMS.up.kind",
    message: `must be ${listed} or "cassette"`,
  });
});

it("is what all readers go through: no other file compares a kind with a name", () => {
  const compared = new RegExp(
    `kind (?:===|!==) "(?:${[...names, "cassette"].join("|")})"|case "(?:${names.join("|")})"`,
  );
  const cwd = join(import.meta.dirname, "../../../..");
  const files = globSync(["src/**/*.ts", "durable-objects/**/*.ts", "scripts/**/*.ts"], { cwd });
  expect(files.length).toBeGreaterThan(700);
  expect(files.filter((file) => compared.test(readFileSync(join(cwd, file), "utf8")))).toEqual([]);
});
