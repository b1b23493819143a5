import { describe, expect, it } from "vitest";
import { credentialOf } from "../../../../src/http/auth/credential.ts";

const TOKEN = "fo-run-aaa.bbb.ccc-_1";
const of = (headers: Record<string, string>, path = "/query") =>
  credentialOf({ path, header: (name) => headers[name] });
const basic = (text: string) => ({ authorization: `Basic ${Buffer.from(text).toString("base64")}` });

describe("the credential of a request", () => {
  it("is the bearer token, else x-api-key, whatever the case of the scheme", () => {
    expect(of({ authorization: `Bearer ${TOKEN}` })).toBe(TOKEN);
    expect(of({ authorization: "bEaReR  the admin key " })).toBe("the admin key");
    expect(of({ "x-api-key": ` ${TOKEN} ` })).toBe(TOKEN);
    expect(of({ authorization: "Bearer a", "x-api-key": "b" })).toBe("a");
  });

  it("is of user and password the one that is a run token, else the password, else the user", () => {
    expect(of(basic(`x:${TOKEN}`))).toBe(TOKEN);
    expect(of(basic(`${TOKEN}:`))).toBe(TOKEN);
    expect(of(basic(`${TOKEN}:x`))).toBe(TOKEN);
    expect(of(basic(TOKEN))).toBe(TOKEN);
    expect(of(basic("operator:the key: naïve"))).toBe("the key: naïve");
    expect(of(basic("the key:"))).toBe("the key");
  });

  it("is the token in the path of a rollout where no header has one", () => {
    const path = `/rollout/${TOKEN}/llm_query`;
    expect(of({}, path)).toBe(TOKEN);
    expect(of({ authorization: "Bearer " }, path)).toBe(TOKEN);
    expect(of({ authorization: "Bearer other" }, path)).toBe("other");
    expect(of({ "x-api-key": "other" }, path)).toBe("other");
  });

  it("is nowhere else in a path", () => {
    for (const path of [
      `/rollout/${TOKEN}`,
      "/rollout/run_1/llm_query",
      `/runs/${TOKEN}/log`,
      `/x/rollout/${TOKEN}/y`,
    ]) {
      expect(of({}, path)).toBeNull();
    }
  });

  it("is none where nothing can be read as one", () => {
    for (const authorization of ["", "Bearer", "Basic", "Basic !!", "Basic a", "Basic Og==", "Digest abc", TOKEN]) {
      expect(of({ authorization })).toBeNull();
    }
    expect(of({ "x-api-key": " " })).toBeNull();
  });
});
