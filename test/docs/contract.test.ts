/** The pages name every route, field and event of the OpenAPI document. */
import { glob, readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { ROUTES } from "../../src/contract/routes/table.ts";
import { openApiText } from "../../src/http/openapi/document.ts";
import { ROOT } from "./page.ts";
import { codesIn, rowsOf } from "./tables.ts";

const schema = z.looseObject({ properties: z.record(z.string(), z.looseObject({})).optional() });
const api = z
  .looseObject({
    components: z.looseObject({ schemas: z.record(z.string(), schema) }),
  })
  .parse(JSON.parse(openApiText()));

const fieldsOf = (name: string) => Object.keys(api.components.schemas[name]?.properties ?? {});
const documented = async (page: string, header: string) =>
  (await rowsOf(page, header)).flatMap(([name]) => codesIn(name)).toSorted();

describe("the pages", () => {
  it("have each route in the guide that its record names", async () => {
    const missing: string[] = [];
    for (const { name, path, guide } of ROUTES) {
      const text = await readFile(join(ROOT, guide), "utf8");
      // Rollout routes are the same routes below another path.
      const parts = path.replace(/^\/rollout\/:id(?=\/[lr]lm_)/, "").split("/");
      const pattern = parts.map((part) => (part.startsWith(":") ? "[^\\s/`]+" : part.replaceAll(".", "\\."))).join("/");
      if (!new RegExp(`${pattern}(?![\\w/-])`).test(text)) missing.push(`${name}: ${guide}`);
    }
    expect(missing).toEqual([]);
  });

  it("name every field of a call", async () => {
    const fields = fieldsOf("Query").filter((name) => name !== "prompt" && name !== "messages");
    expect(fields.length).toBeGreaterThan(8);
    expect(await documented("docs/query.md", "field")).toEqual(fields.toSorted());
  });

  it("name every field of a batch that a call has not, and the three that act on every slot", async () => {
    const ofCall = new Set(fieldsOf("Query"));
    const own = fieldsOf("Batch").filter((name) => !ofCall.has(name) && name !== "prompts" && name !== "items");
    const ofAll = ["deadline_ms", "on_lost", "dedupe"];
    expect(await documented("docs/batch.md", "field")).toEqual([...own, ...ofAll].toSorted());
  });

  it("name every style of errors", async () => {
    const { enum: styles } = z
      .looseObject({ enum: z.array(z.string().nullable()) })
      .parse(api.components.schemas["Batch"]?.properties?.["error_style"]);
    const known = styles.filter((style) => style !== null);
    expect(await documented("docs/batch.md", "style")).toEqual(known.toSorted());
  });

  it("name every field of a run", async () => {
    expect(await documented("docs/runs.md", "field")).toEqual(fieldsOf("RunRequest").toSorted());
  });

  it("name every event of the log", async () => {
    const line = z
      .looseObject({ description: z.string() })
      .parse(api.components.schemas["LogLine"]?.properties?.["event_type"]);
    const events = line.description.split(", ").filter((word) => /^[a-z_]+$/.test(word));
    expect(events).toContain("run_closed");
    expect(await documented("docs/log.md", "event")).toEqual(events.toSorted());
  });

  it("name every code that the table of errors has, and no other, where they speak of one", async () => {
    const codes = new Set(await documented("docs/errors.md", "code"));
    for await (const page of glob("docs/*.md", { cwd: ROOT })) {
      const text = await readFile(join(ROOT, page), "utf8");
      const spoken = codesIn(text).filter((code) =>
        /^[a-z]+_(exhausted|exceeded|conflict|allowed|found|committed)$/.test(code),
      );
      expect(
        spoken.filter((code) => !codes.has(code)),
        page,
      ).toEqual([]);
    }
  });
});
