/** Every route that takes a body has a bound, and says it to who sends more, whether the length is announced or not. */
import { describe, expect, it } from "vitest";
import { createApp } from "../../../src/http/app.ts";
import { makeKeys } from "../../../src/http/auth/keys.ts";
import { signRunToken } from "../../../src/http/auth/token.ts";
import { CONTEXT_JSON_BYTES_MAX } from "../../../src/limits.ts";
import { BODY_BYTES } from "../../../src/contract/routes/table.ts";

const ADMIN_KEY = "the admin key of these tests, long enough";
const rules = { ok: true, rules: { models: [], defaultModel: null, unpriced: "refuse" } };
const pending = { request: {}, createdAtS: Date.now() / 1_000, status: "pending" };
/** Objects that answer what a route wants to know before it reads its body. */
const object = { modelRules: () => rules, budget: () => null, upload: () => ({ upload: pending, parts: [] }) };
const namespace = { get: () => object, getByName: () => object, idFromName: (name: string) => name };
const env = { ADMIN_KEY, UPSTREAMS: { sim: { kind: "simulated" } }, FILES: {}, RUN: namespace, SHELF: namespace };

const errors: string[] = [];
const log = (message: string) => errors.push(message);
const app = createApp({ now: Date.now, newRequestId: () => "id", log, random: () => 0 });
const routes = Object.entries(BODY_BYTES);
/** Routes whose bodies go to storage as they arrive, half a gigabyte: test/objects/files-upload.test.ts sends those. */
const FORMS = ["POST /v1/files", "POST /v1/uploads/:id/parts"];
/** Routes of the operator, which refuse a run's token before they read a body. */
const OPERATORS = ["PATCH /runs/:id", "PUT /cassettes/:tape"];

const token = async (): Promise<string> => {
  const { signing } = await makeKeys({ adminKey: ADMIN_KEY });
  return signRunToken(signing, { runId: "run_1", depth: 0, expiresAtMs: Date.now() + 60_000 });
};

/** A body of so many bytes, in pieces. */
function body(bytes: number): ReadableStream<Uint8Array> {
  const piece = new Uint8Array(1024 * 1024).fill(0x20);
  let left = bytes;
  return new ReadableStream({
    pull(controller) {
      const next = piece.subarray(0, Math.min(left, piece.length));
      left -= next.length;
      controller.enqueue(next);
      if (left === 0) controller.close();
    },
  });
}

async function send(route: string, bytes: number, announced: boolean): Promise<{ status: number; message: string }> {
  const [method = "", path = ""] = route.split(" ");
  const credential = OPERATORS.includes(route) ? ADMIN_KEY : await token();
  const headers = new Headers({ authorization: `Bearer ${credential}` });
  if (path !== "/v1/files" && !path.endsWith("/parts")) headers.set("content-type", "application/json");
  if (announced) headers.set("content-length", String(bytes));
  const init = { method, headers, body: announced ? null : body(bytes), duplex: "half" };
  const answer = await app.request(path.replace(/:(id|name)/, "run_1"), init, env);
  return { status: answer.status, message: await answer.text() };
}

describe("the table of body bounds", () => {
  it("has every route of the application that takes a body, and no other", () => {
    const mounted = app.routes.filter(({ method }) => ["POST", "PATCH", "PUT"].includes(method));
    // Without what a parameter matches: `/dag/:id{…}`.
    const routes = mounted.map(({ method, path }) => `${method} ${path.replace(/\{.*\}$/, "")}`);
    expect([...new Set(routes)].toSorted()).toEqual(Object.keys(BODY_BYTES).toSorted());
  });

  it("is shown at GET /limits", async () => {
    const shown = (await (await app.request("/limits", {}, env)).json()) as Record<string, unknown>;
    expect(shown["body_bytes"]).toEqual(BODY_BYTES);
  });
});

describe("a body of one byte more than its route takes", () => {
  it.each(routes)("is refused on %s where its length is announced, and the bound is named", async (route, bytesMax) => {
    const refused = await send(route, bytesMax + 1, true);
    expect([refused.status, refused.message]).toEqual([413, expect.stringContaining(` ${bytesMax} bytes`)]);
  });

  it.each(routes.filter(([route]) => !FORMS.includes(route)))(
    "is refused on %s where it comes in pieces",
    async (route, bytesMax) => {
      const refused = await send(route, bytesMax + 1, false);
      // The bound of the route is that of a text; JSON is parsed whole.
      const named = route === "POST /contexts" ? CONTEXT_JSON_BYTES_MAX : bytesMax;
      expect([refused.status, refused.message]).toEqual([413, expect.stringContaining(` ${named} bytes`)]);
    },
  );

  it.each(routes.filter(([route, bytesMax]) => !FORMS.includes(route) && bytesMax < 1_000_000))(
    "is not what %s says of a body of just that size",
    async (route, bytesMax) => {
      const { message } = await send(route, bytesMax, false);
      expect(message).not.toContain("too large");
      expect(errors.filter((error) => error.includes("ReadableStream"))).toEqual([]);
    },
  );
});
