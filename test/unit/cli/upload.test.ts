import { createHash } from "node:crypto";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Api } from "../../../cli/batch/server/api.ts";
import { uploadFile } from "../../../cli/batch/server/upload.ts";
import { Folder } from "./command.ts";
import { type FakePlan, FakeServer, send } from "./fake-server.ts";

let folder: Folder;
let server: FakeServer;
beforeEach(async () => {
  folder = await Folder.create();
});
afterEach(async () => {
  await server.stop();
  await folder.remove();
});

const CONTENT = '{"custom_id":"a"}\n{"custom_id":"bé"}\n';
const BYTES = Buffer.byteLength(CONTENT);

/** Uploads that content in forms and parts of these sizes. The paths that were asked, and how far it told to be. */
async function upload(plan: FakePlan, sizes: { formBytesMax?: number; partBytes?: number }) {
  server = await FakeServer.start(plan);
  await folder.write("file", CONTENT);
  const place = { apiUrl: `${server.url}/v1`, gatewayUrl: null, token: "token", tokenFrom: "" };
  const { signal } = new AbortController();
  const api = new Api(place, { sleep: () => Promise.resolve(), random: () => 1, trouble: () => {}, signal });
  const told: number[] = [];
  const md5 = createHash("md5").update(CONTENT).digest("hex");
  const file = { path: join(folder.path, "file"), bytes: BYTES, md5 };
  const id = await uploadFile(api, file, { ...sizes, sent: (bytes: number) => void told.push(bytes) });
  return { id, told, content: server.files.get(id)?.toString("utf8"), paths: server.seen.map(({ path }) => path) };
}

describe("uploadFile", () => {
  it("sends a file of the largest size in one form, with its length", async () => {
    expect(await upload({}, { formBytesMax: BYTES })).toEqual({
      id: "file-1",
      told: [BYTES],
      content: CONTENT,
      paths: ["/v1/files"],
    });
    expect(server.seen[0]?.body.toString("utf8")).toContain('name="purpose"\r\n\r\nbatch\r\n');
  });

  it("sends a larger one in parts, with its checksum", async () => {
    const { told, content, paths } = await upload({}, { formBytesMax: BYTES - 1, partBytes: 16 });
    const part = "/v1/uploads/upload_1/parts";
    expect(paths).toEqual(["/v1/uploads", part, part, part, "/v1/uploads/upload_1/complete"]);
    expect({ told, content }).toEqual({ told: [16, 32, BYTES], content: CONTENT });
    expect(JSON.parse(server.seen.at(-1)?.body.toString("utf8") ?? "")).toEqual({
      part_ids: ["part_0", "part_1", "part_2"],
      md5: createHash("md5").update(CONTENT).digest("hex"),
    });
  });

  it("sends it in parts where one form is too large for the server", async () => {
    const meddle: FakePlan["meddle"] = ({ path }, reply) => {
      if (path === "/v1/files") send(reply, 413, {});
      return path === "/v1/files";
    };
    const { content, paths } = await upload({ meddle }, {});
    expect(content).toBe(CONTENT);
    expect(paths).toHaveLength(4);
  });

  it("sends a large one whole to a server that takes no parts", async () => {
    const meddle: FakePlan["meddle"] = ({ path }, reply) => {
      if (path === "/v1/uploads") send(reply, 404, {});
      return path === "/v1/uploads";
    };
    expect(await upload({ meddle }, { formBytesMax: 1 })).toMatchObject({ content: CONTENT });
  });

  it("sends a part again that was lost, from its beginning", async () => {
    let lost = 0;
    const meddle: FakePlan["meddle"] = ({ path }, reply) => {
      if (!path.endsWith("/parts") || lost === 2) return false;
      lost += 1;
      reply.destroy();
      return true;
    };
    const { content, told } = await upload({ meddle }, { formBytesMax: 1, partBytes: 32 });
    expect({ content, told, lost }).toEqual({ content: CONTENT, told: [32, 32, 32, BYTES], lost: 2 });
  });

  it("gives up after five attempts", async () => {
    const meddle: FakePlan["meddle"] = (_, reply) => {
      send(reply, 500, {});
      return true;
    };
    await expect(upload({ meddle }, {})).rejects.toThrow("POST /v1/files returned 500");
    expect(server.seen).toHaveLength(5);
  });
});
