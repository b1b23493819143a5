import { describe, expect, it } from "vitest";
import { regionOf } from "../../../src/http/native/client-region.ts";

describe("the region of a client", () => {
  it.each([
    ["Seattle", "NA", "-122.33", "wnam"],
    ["the west of the border", "NA", "-100.001", "wnam"],
    ["the border", "NA", "-100", "enam"],
    ["New York", "NA", "-74.00", "enam"],
    ["São Paulo", "SA", "-46.63", "sam"],
    ["Lisbon", "EU", "-9.14", "weur"],
    ["Berlin", "EU", "13.40", "weur"],
    ["Warsaw", "EU", "21.01", "eeur"],
    ["Dubai", "AS", "55.27", "me"],
    ["Mumbai", "AS", "72.88", "apac"],
    ["Tokyo", "AS", "139.69", "apac"],
    ["Sydney", "OC", "151.21", "oc"],
    ["Nairobi", "AF", "36.82", "afr"],
  ])("%s is by its continent and longitude", (_, continent, longitude, region) => {
    expect(regionOf({ continent, longitude })).toBe(region);
  });

  it("is no region outside of the gateway's jurisdiction", () => {
    const [berlin, tokyo] = [
      { continent: "EU", longitude: "13.40" },
      { continent: "AS", longitude: "139.69" },
    ];
    expect([regionOf(berlin, "eu"), regionOf(tokyo, "eu"), regionOf(berlin, "us")]).toEqual(["weur", null, null]);
  });

  it.each([
    ["nothing is reported", undefined],
    ["no continent is reported", { longitude: "10" }],
    ["Tor hides it", { continent: "T1", longitude: "10" }],
    ["it is in Antarctica", { continent: "AN", longitude: "10" }],
    ["the longitude is missing, where it decides", { continent: "EU" }],
    ["the longitude is empty", { continent: "NA", longitude: "" }],
    ["the longitude is no number of degrees", { continent: "AS", longitude: "181" }],
    ["the report is no object", "EU"],
  ])("is unknown if %s", (_, cf) => {
    expect(regionOf(cf)).toBeNull();
  });
});
