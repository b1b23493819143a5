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
/** Python's clients that JavaScript has too are told apart. */
const nameOf = (client: string): string =>
  client === "openai" || client === "anthropic" ? `${client} for Python` : client;

it("docs/v1.md names the Python clients of the tests, their versions, and what their programs do", async () => {
  const tested = new Map<string, { versions: string[]; shows: string }>();
  for (const client of PYTHON_CLIENTS) {
    const name = nameOf(client.package.replace(/\[.*/, ""));
    const versions = tested.get(name)?.versions ?? [];
    tested.set(name, { versions: [...versions, versionOf(client)], shows: client.shows });
  }
  const named = (await rowsOf(PAGE, "client")).filter((row) => row.length === 3);
  const python = named.slice(0, tested.size);
  expect(python.map(([name = "", versions, shows]) => [name.replaceAll("`", ""), codesIn(versions), shows])).toEqual(
    [...tested].map(([name, { versions, shows }]) => [name, versions, shows]),
  );
});

const dependencies = z.object({ devDependencies: z.record(z.string(), z.string()) });

it("docs/v1.md names the JavaScript clients of the tests with their versions", async () => {
  const text = await readFile(join(ROOT, "package.json"), "utf8");
  const { devDependencies } = dependencies.parse(JSON.parse(text));
  const python = new Set(PYTHON_CLIENTS.map((client) => nameOf(client.package.replace(/\[.*/, ""))));
  const rows = (await rowsOf(PAGE, "client"))
    .filter((row) => row.length === 3)
    .filter(([name = ""]) => !python.has(name.replaceAll("`", "")));
  expect(rows.length).toBeGreaterThan(0);
  for (const [client, versions] of rows) {
    const [name = ""] = codesIn(client);
    const installed = [devDependencies[name], devDependencies[`${name}-6`]?.replace(/^npm:.*@/, "")];
    expect(codesIn(versions), name).toEqual(installed.filter((version) => version !== undefined));
  }
});
