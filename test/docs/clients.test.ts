/** docs/v1.md names each client that the tests drive with the version that is installed, and no others. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { z } from "zod";
import { PYTHON_CLIENTS } from "../clients/python/clients.ts";
import { versionOf } from "../clients/python/environments.ts";
import { ROOT } from "./page.ts";
import { codesIn, rowsOf } from "./tables.ts";

const PAGE = "docs/v1.md";

it("docs/v1.md names the Python clients of the tests, their versions, programs and errors", async () => {
  const names = new Set(PYTHON_CLIENTS.map((client) => client.package));
  const tested = [...names].map((name) => {
    const clients = PYTHON_CLIENTS.filter((client) => client.package === name);
    const [{ shows, error } = { shows: "", error: "" }] = clients;
    return [[name.replace(/\[.*/, "")], clients.map((client) => versionOf(client)), shows, [error]];
  });
  const rows = await rowsOf(PAGE, "Python");
  expect(
    rows.map(([name, versions, shows, error]) => [codesIn(name), codesIn(versions), shows, codesIn(error)]),
  ).toEqual(tested);
});

const dependencies = z.object({ devDependencies: z.record(z.string(), z.string()) });

it("docs/v1.md names the JavaScript clients of the tests with their versions", async () => {
  const text = await readFile(join(ROOT, "package.json"), "utf8");
  const { devDependencies } = dependencies.parse(JSON.parse(text));
  const rows = await rowsOf(PAGE, "JavaScript");
  expect(rows.length).toBeGreaterThan(0);
  for (const [client, versions] of rows) {
    const [name = ""] = codesIn(client);
    const installed = [devDependencies[name], devDependencies[`${name}-6`]?.replace(/^npm:.*@/, "")];
    expect(codesIn(versions), name).toEqual(installed.filter((version) => version !== undefined));
  }
});
