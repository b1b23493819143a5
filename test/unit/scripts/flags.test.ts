import { describe, expect, it } from "vitest";
import { flagValues, unlessGiven } from "../../../scripts/flags.ts";

describe("flagValues", () => {
  it("reads both spellings, in order", () => {
    expect(flagValues(["--env-file", "a", "--x", "--env-file=b=c"], "env-file")).toEqual(["a", "b=c"]);
  });

  it("takes neither a longer name nor a following flag for a value", () => {
    expect(flagValues(["--port-range", "1", "--port", "--local"], "port")).toEqual([]);
  });
});

describe("unlessGiven", () => {
  it("adds the flag where the person gave none", () => {
    expect(unlessGiven(["--ip", "::1"], "port", "8787")).toEqual(["--port", "8787"]);
  });

  it("stands back where the person gave it", () => {
    expect(unlessGiven(["--port=1"], "port", "8787")).toEqual([]);
  });
});
