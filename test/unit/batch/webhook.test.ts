import OpenAI from "openai";
import OpenAI6 from "openai-6";
import { describe, expect, it } from "vitest";
import { webhookBody, webhookHeaders, webhookKey } from "../../../src/batch/webhook.ts";

const SECRET = `whsec_${btoa("a secret of thirty-two bytes, ok")}`;
const KEY = webhookKey(SECRET) ?? new Uint8Array();
const nowS = () => Math.floor(Date.now() / 1_000);

const body = webhookBody({ id: "evt_1", batchId: "batch_1", status: "completed", createdAtS: 1_787_176_071 });

const CLIENTS = [
  ["openai 7", new OpenAI({ apiKey: "k" })],
  ["openai 6", new OpenAI6({ apiKey: "k" })],
] as const;

describe("the event of a batch", () => {
  it.each(["completed", "failed", "expired", "cancelled"] as const)("names the batch that is %s", (status) => {
    const text = webhookBody({ id: "evt_1", batchId: "batch_1", status, createdAtS: 5 });
    expect(JSON.parse(text)).toEqual({
      id: "evt_1",
      object: "event",
      created_at: 5,
      type: `batch.${status}`,
      data: { id: "batch_1" },
    });
  });
});

describe.each(CLIENTS)("the real client of %s", (_, client) => {
  const unwrap = (text: string, headers: Record<string, string>, secret = SECRET) =>
    client.webhooks.unwrap(text, headers, secret);

  it("accepts a delivery", async () => {
    const headers = await webhookHeaders({ id: "wh_1", sentAtS: nowS(), body }, KEY);
    expect(await unwrap(body, headers)).toEqual(JSON.parse(body));
  });

  it("accepts one signed with a secret that is plain text", async () => {
    const key = webhookKey("plain sécret") ?? new Uint8Array();
    const headers = await webhookHeaders({ id: "wh_1", sentAtS: nowS(), body }, key);
    expect(await unwrap(body, headers, "plain sécret")).toMatchObject({ id: "evt_1" });
  });

  it("refuses a body, an id and a secret that were not signed", async () => {
    const headers = await webhookHeaders({ id: "wh_1", sentAtS: nowS(), body }, KEY);
    await expect(unwrap(`${body} `, headers)).rejects.toThrow(/signature/);
    await expect(unwrap(body, { ...headers, "webhook-id": "wh_2" })).rejects.toThrow(/signature/);
    await expect(unwrap(body, headers, `whsec_${btoa("another")}`)).rejects.toThrow(/signature/);
  });

  it("refuses a delivery that is older than five minutes", async () => {
    const headers = await webhookHeaders({ id: "wh_1", sentAtS: nowS() - 301, body }, KEY);
    await expect(unwrap(body, headers)).rejects.toThrow(/too old/);
  });
});

describe("the signature", () => {
  it("is that of the Standard Webhooks specification", async () => {
    // Computed with `openssl dgst -sha256 -hmac key -binary | base64` over "msg_1.1700000000.{}".
    const headers = await webhookHeaders(
      { id: "msg_1", sentAtS: 1_700_000_000, body: "{}" },
      new TextEncoder().encode("key"),
    );
    expect(headers).toEqual({
      "content-type": "application/json",
      "webhook-id": "msg_1",
      "webhook-timestamp": "1700000000",
      "webhook-signature": "v1,XaXLFEFQ69Q4+demDWPEv5ydXczDW2mM5crCUEFcFBA=",
    });
  });
});

describe("a secret", () => {
  it.each(["", "whsec_", "whsec_***", "whsec_a"])("without a key is refused: %j", (secret) => {
    expect(webhookKey(secret)).toBeNull();
  });

  it("is base64 after its prefix, else the text itself", () => {
    expect(webhookKey(`whsec_${btoa("key")}`)).toEqual(new TextEncoder().encode("key"));
    expect(webhookKey("key")).toEqual(new TextEncoder().encode("key"));
  });
});
