import { describe, expect, it } from "vitest";
import { IMAGES_MEASURED_MAX } from "../../../../../src/limits.ts";
import { callFactsOf } from "../../../../../src/providers/formats/request/call-facts.ts";
import { readRequest } from "../../../../../src/providers/formats/request/read.ts";
import type { Endpoint } from "../../../../../src/call.ts";
import { parseCall } from "../../../../../src/contract/call.ts";
import { SETTINGS_DEFAULT } from "../../../../../src/contract/call-options.ts";
import { dataUrl, fileOf, HOSTILE, jpeg, NO_IMAGES, png, webp } from "../../../../support/images.ts";

const bytes = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));
function factsOf(endpoint: Endpoint, body: object) {
  const read = readRequest(endpoint, bytes({ model: "m", ...body }));
  if (!read.ok) throw new Error(JSON.stringify(read.reason));
  return callFactsOf(read.value, { model: null, priority: 2, timeoutMs: null });
}
const chat = (...parts: object[]) => factsOf("chat", { messages: [{ role: "user", content: parts }] });
const URL_OF = dataUrl("png", png([640, 480]));
const sized = { width: 640, height: 480 };
const unknown = { width: 0, height: 0 };

describe("an image's size in the facts of a call", () => {
  it.each<[string, Endpoint, object]>([
    ["a chat's part", "chat", { type: "image_url", image_url: { url: URL_OF } }],
    ["a chat's part with a bare URL", "chat", { type: "image_url", image_url: URL_OF }],
    [
      "a tool's result",
      "chat",
      { type: "tool_result", tool_use_id: "t", content: [{ type: "image_url", image_url: { url: URL_OF } }] },
    ],
    [
      "Anthropic's block",
      "messages",
      { type: "image", source: { type: "base64", media_type: "image/png", data: png([640, 480]) } },
    ],
    [
      "Anthropic's tool result",
      "messages",
      {
        ...{ type: "tool_result", tool_use_id: "t" },
        content: [{ type: "image", source: { type: "base64", media_type: "image/png", data: png([640, 480]) } }],
      },
    ],
  ])("is read in %s", (_, endpoint, part) => {
    const facts = factsOf(endpoint, { messages: [{ role: "user", content: [part] }], max_tokens: 5 });
    expect(facts).toMatchObject({ mediaParts: 1, images: [sized] });
    expect(facts.unbounded).toBeUndefined();
  });

  it("is read in items and tool outputs of the Responses API", () => {
    const image = { type: "input_image", image_url: URL_OF, detail: "high" };
    const input = [
      { role: "user", content: [image] },
      { type: "function_call_output", call_id: "c", output: [image] },
    ];
    expect(factsOf("responses", { input })).toMatchObject({
      mediaParts: 2,
      images: [{ ...sized, detail: "high", count: 2 }],
    });
  });

  it("is read in the messages of a native call, and stays in the facts that a group stores", () => {
    const messages = [
      { role: "user", content: [{ type: "image_url", image_url: { url: fileOf([1_920, 1_080], 1) } }] },
    ];
    const call = parseCall({ messages }, SETTINGS_DEFAULT, (field) => field);
    if (!call.ok) throw new Error("refused");
    expect(call.value.facts).toMatchObject({ mediaParts: 1, images: [{ width: 1_920, height: 1_080 }] });
  });

  it("goes with the detail that the request names; one that is unknown or given twice may be any", () => {
    const image = (detail: unknown, beside: object = {}) =>
      chat({ type: "image_url", image_url: { url: URL_OF, detail }, ...beside }).images;
    expect(image("low")).toEqual([{ ...sized, detail: "low" }]);
    expect(image("auto")).toEqual([sized]);
    expect(image(null)).toEqual([sized]);
    for (const odd of ["LOW", "tiny", "", 1, ["low"]]) expect(image(odd)).toEqual([{ ...sized, detail: "other" }]);
    expect(image("low", { detail: "high" })).toEqual([{ ...sized, detail: "other" }]);
  });

  it("is not known of remote images, ids, and images in several places", () => {
    const remote = { type: "image_url", image_url: { url: "https://a.example/b.png", detail: "low" } };
    expect(chat(remote)).toMatchObject({ mediaParts: 1, images: [{ ...unknown, detail: "low" }] });
    const both = { type: "input_image", image_url: URL_OF, file_id: "file_1" };
    expect(factsOf("responses", { input: [{ role: "user", content: [both] }] }).images).toEqual([unknown]);
    const source = { type: "base64", media_type: "image/png", data: png([1, 1]), url: "https://a.example/b.png" };
    expect(factsOf("messages", { messages: [{ role: "user", content: [{ type: "image", source }] }] }).images).toEqual([
      unknown,
    ]);
    const named = { type: "file", file_id: "f", data: png([1, 1]) };
    expect(
      factsOf("messages", { messages: [{ role: "user", content: [{ type: "image", source: named }] }] }).images,
    ).toEqual([unknown]);
  });

  it.each(HOSTILE)("is not known of $name", ({ type, data }) => {
    expect(chat({ type: "image_url", image_url: { url: dataUrl(type, data) } })).toMatchObject({
      mediaParts: 1,
      images: [unknown],
    });
  });

  it.each(NO_IMAGES)("does not exist for $name, which counts as a file", ({ url }) => {
    const facts = chat({ type: "image_url", image_url: { url } });
    expect([facts.mediaParts, facts.fileParts, facts.images]).toEqual([0, 1, undefined]);
    const source = { type: "base64", media_type: "application/pdf", data: png([1, 1]) };
    expect(factsOf("messages", { messages: [{ role: "user", content: [{ type: "image", source }] }] })).toMatchObject({
      ...{ mediaParts: 0, fileParts: 1 },
    });
  });

  it("is kept once for images that are alike, and for no more sizes than the bound", () => {
    const image = (size: number) => ({ type: "image_url", image_url: { url: dataUrl("webp", webp([size, size])) } });
    expect(chat(image(5), image(6), image(5)).images).toEqual([
      { width: 5, height: 5, count: 2 },
      { width: 6, height: 6 },
    ]);
    const many = chat(...Array.from({ length: IMAGES_MEASURED_MAX + 5 }, (_, at) => image(at + 1)));
    expect([many.mediaParts, many.images?.length]).toEqual([IMAGES_MEASURED_MAX + 5, IMAGES_MEASURED_MAX]);
  });

  it("costs no more to read in an image of megabytes than in a small one", () => {
    const large = dataUrl("jpeg", jpeg([640, 480], { profiles: 50 }));
    expect(chat({ type: "image_url", image_url: { url: large } }).images).toEqual([sized]);
  });
});
