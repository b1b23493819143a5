import { createHash } from "node:crypto";
import { describe, expect, it, vi } from "vitest";
import type { StreamFamily } from "../../../../../src/providers/formats/stream/error.ts";
import { StreamObserver } from "../../../../../src/providers/formats/stream/observer.ts";
import { bytesOf, chatEvents, chatUsage, play, playText, recorded, observerOptions, textOf } from "./recorded.ts";

const FAMILIES: StreamFamily[] = ["chat", "completions", "responses", "messages"];
const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

describe("StreamObserver", () => {
  it.each([
    ["chat", chatUsage, "gpt-5-mini-2026-01-01", "stop", 6, 23],
    ["completions", { promptTokens: 3, completionTokens: 2 }, "llama-3", "length", 4, 9],
    [
      "responses",
      { promptTokens: 36, cachedTokens: 4, completionTokens: 87, reasoningTokens: 60 },
      "gpt-5-mini",
      "completed",
      6,
      11,
    ],
    [
      "messages",
      { promptTokens: 37, cachedTokens: 5, cacheWriteTokens: 7, completionTokens: 15 },
      "claude-sonnet-5",
      "end_turn",
      8,
      14,
    ],
  ] as const)(
    "reads usage, model, reason and size of a %s stream",
    (family, usage, model, finishReason, events, contentBytes) => {
      const { outcome } = playText(recorded[family].join(""), { family });
      expect(outcome).toMatchObject({ usage, model, finishReason, events, contentBytes, complete: true, error: null });
    },
  );

  it.each([
    ["chat", 0.029],
    ["completions", 0.005],
    ["responses", 0.123],
    ["messages", 0.052],
  ] as const)("adds the cost to the usage of a %s stream and changes no other byte", (family, cost) => {
    const stream = recorded[family].join("");
    const { text } = playText(stream, { family });
    const inserted = `,"cost":${cost}`;
    expect(text.split(inserted)).toHaveLength(2);
    expect(sha256(text.replace(inserted, ""))).toBe(sha256(stream));
  });

  it.each([
    ["chat", "0.029"],
    ["completions", "0.005"],
    ["responses", "0.123"],
    ["messages", "0.052"],
  ] as const)("leaves a %s stream that passes as it came, with the cost in a comment behind it", (family, cost) => {
    const stream = recorded[family].join("");
    for (const usageChunk of ["requested", "injected"] as const) {
      const { text, outcome } = playText(stream, { family, usageChunk, passes: true });
      expect(text).toBe(`${stream}: fanout cost=${cost}\n\n`);
      expect(outcome).toMatchObject({ complete: true, error: null });
    }
    expect(playText(stream, { family, passes: true, costUsdOf: () => 1e-9 }).text).toMatch(/ cost=0\.000000001\n\n$/);
    expect(playText(stream, { family, passes: true, costUsdOf: () => null }).text).toBe(stream);
  });

  it("releases a stream that passes after its first event with data, with the bytes that it has kept", () => {
    const observer = new StreamObserver(observerOptions({ family: "chat", passes: true }));
    const [first = "", second = ""] = recorded.chat;
    const feed = (text: string) => textOf(observer.feed(bytesOf(text)));
    const release = () => {
      const kept = observer.release();
      return kept === null ? null : textOf([kept]);
    };
    expect([feed(": a comment\n\n"), release()]).toEqual([": a comment\n\n", null]);
    expect([feed(first.slice(0, 9)), release()]).toEqual(["", null]);
    expect([feed(first.slice(9) + second.slice(0, 5)), release()]).toEqual([first, second.slice(0, 5)]);
    expect(release()).toBeNull();
  });

  it("releases no stream that must be edited, and none that begins with an error", () => {
    const edited = new StreamObserver(observerOptions({ family: "chat" }));
    edited.feed(bytesOf(recorded.chat[0] ?? ""));
    expect(edited.release()).toBeNull();
    const failing = new StreamObserver(observerOptions({ family: "chat", passes: true }));
    failing.feed(bytesOf('data: {"error":{"message":"m"}}\n\n'));
    failing.feed(bytesOf(recorded.chat[0] ?? ""));
    expect(failing.release()).toBeNull();
  });

  it.each(FAMILIES)("forwards a %s stream byte for byte if no price is known", (family) => {
    const stream = recorded[family].join("");
    expect(playText(stream, { family, costUsdOf: () => null }).text).toBe(stream);
  });

  it.each(FAMILIES)("forwards each event of a %s stream before the next one arrives", (family) => {
    const tap = new StreamObserver(observerOptions({ family, costUsdOf: () => null }));
    for (const event of recorded[family]) expect(textOf(tap.feed(bytesOf(event)))).toBe(event);
    expect(tap.end("clean").bytes).toEqual([]);
  });

  it("forwards the events of one chunk as one piece", () => {
    const tap = new StreamObserver(observerOptions({ costUsdOf: () => null }));
    const chunk = bytesOf(chatEvents.join(""));
    expect(tap.feed(chunk)).toEqual([chunk]);
  });

  it.each(FAMILIES)(
    "ends a %s stream that breaks after any of its events with an error, unless it was over",
    (family) => {
      const events = recorded[family];
      for (let count = 0; count <= events.length; count++) {
        const stream = events.slice(0, count).join("");
        const { text, outcome } = playText(stream, { family, costUsdOf: () => null }, "broken");
        const over = count === events.length;
        expect(outcome.complete).toBe(over);
        expect(text.startsWith(stream)).toBe(true);
        expect(text.length > stream.length).toBe(!over);
      }
    },
  );

  it.each(FAMILIES)("sends nothing of the event in which a %s stream broke", (family) => {
    const whole = recorded[family].slice(0, 2).join("");
    const cut = whole + (recorded[family][2]?.slice(0, -1) ?? "");
    const options = { family, costUsdOf: () => null };
    expect(playText(cut, options, "broken").text).toBe(playText(whole, options, "broken").text);
  });

  it.each([
    [
      "chat",
      'data: {"error":{"message":"up broke off its answer","type":"upstream_error","param":null,"code":"upstream_truncated"}}\n\n',
    ],
    [
      "completions",
      'data: {"error":{"message":"up broke off its answer","type":"upstream_error","param":null,"code":"upstream_truncated"}}\n\n',
    ],
    [
      "responses",
      'event: error\ndata: {"type":"error","code":"upstream_truncated","message":"up broke off its answer","param":null,"sequence_number":2}\n\n',
    ],
    [
      "messages",
      'event: error\ndata: {"type":"error","error":{"type":"api_error","message":"up broke off its answer"}}\n\n',
    ],
  ] as const)("reports a broken stream to a %s client in the form at which its SDK throws", (family, event) => {
    const start = recorded[family].slice(0, 2).join("");
    expect(playText(start, { family }, "broken").text).toBe(start + event);
    expect(playText(start, { family }, "clean").text).toBe(start + event);
  });

  it("reports the caller's reason to the client", () => {
    const tap = new StreamObserver(observerOptions({ family: "chat" }));
    const { bytes } = tap.end("broken", { reason: "upstream_timeout", upstream: "up", timeoutMs: 5 });
    expect(textOf(bytes)).toContain('"code":"upstream_timeout"');
  });

  it("is not complete, and reports no upstream error, if the stream only broke", () => {
    const { outcome } = playText(chatEvents.slice(0, 6).join(""), {}, "broken");
    expect(outcome).toMatchObject({ usage: chatUsage, complete: false, error: null });
  });

  it.each(FAMILIES)("reads a last event of a %s stream without its blank line as whole", (family) => {
    const stream = recorded[family].join("").trimEnd();
    const { text, outcome } = playText(stream, { family, costUsdOf: () => null });
    expect([text, outcome.complete]).toEqual([stream, true]);
  });

  it("closes a last event that lacks its blank line before an error event", () => {
    const start = chatEvents.slice(0, 2).join("").trimEnd();
    expect(playText(start, {}).text).toMatch(/\d\}\n\ndata: \{"error"/);
  });

  it.each(['data: {"choi', "data: [DO", "event: x\n", "dat"])("drops %j if a stream closes within it", (cut) => {
    const start = chatEvents.slice(0, 2).join("");
    const { text, outcome } = playText(start + cut, {});
    expect(text).toBe(playText(start, {}).text);
    expect(outcome.complete).toBe(false);
  });

  it("forwards a comment without its line end at the end of a stream", () => {
    const stream = `${chatEvents.join("")}: bye`;
    expect(playText(stream, { costUsdOf: () => null }).text).toBe(stream);
  });

  it("reads a stream with CRLF, a byte order mark, and data over several lines", () => {
    const events = [
      '\uFEFFdata:{"model":"m","choices":[{"index":0,"delta":{"content":"a"}}]}\r\n\r\n',
      'id: 4\r\ndata: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],\r\ndata: "usage":\r\ndata:{ "prompt_tokens": 1,\r\n: note\r\ndata: "completion_tokens": 1 }\r\ndata: }\r\n\r\n',
      "data: [DONE]\r\n\r\n",
    ];
    const { text, outcome } = playText(events.join(""), {});
    expect(text).toBe(events.join("").replace('"completion_tokens": 1 }', '"completion_tokens": 1,"cost":0.002 }'));
    expect(outcome).toMatchObject({ model: "m", finishReason: "stop", complete: true, usage: { promptTokens: 1 } });
  });

  it("forwards a comment of any length at the end of a stream", () => {
    const comment = `: ${":".repeat(100_000)}\n`;
    const { text } = playText(`${comment}x`, {});
    expect(text.startsWith(":")).toBe(false);
    expect(playText(comment, {}).text.startsWith(`${comment}\n\ndata: {"error"`)).toBe(true);
  });

  it("parses the first event and the last ones, and none of the deltas between", () => {
    const [first = "", piece = "", ...rest] = chatEvents.toSpliced(2, 2);
    const parse = vi.spyOn(JSON, "parse");
    const { outcome } = playText(first + piece.repeat(1_000) + rest.join(""), { usageChunk: "injected" });
    expect(parse.mock.calls.length).toBe(3);
    parse.mockRestore();
    expect(outcome).toMatchObject({ complete: true, contentBytes: 8_000 });
  });

  it.each(["plain", "café 日本 😀"])(
    "reads a batch of deltas (%s) with a report among them as it reads each alone",
    (word) => {
      const delta = `data: {"choices":[{"index":0,"delta":{"content":"${word}"}}]}\n\n`;
      const events = [
        chatEvents[0] ?? "",
        delta,
        `: note\n\n${delta}`,
        ...chatEvents.slice(2),
        delta,
        "data: [DONE]\n\n",
      ];
      const options = { usageChunk: "injected" } as const;
      const alone = play(events.map(bytesOf), options);
      const together = play([bytesOf(events[0] ?? ""), bytesOf(events.slice(1).join(""))], options);
      expect(together.outcome).toEqual(alone.outcome);
      expect(together.sent).toEqual(alone.sent);
      expect(together.outcome.events).toBeGreaterThan(6);
    },
  );

  it("counts no bytes of the answer where nothing depends on them", () => {
    const stream = recorded.chat.join("");
    const { outcome, text } = playText(stream, { countsContent: false });
    const counted = playText(stream, {});
    expect({ ...outcome, contentBytes: 23 }).toEqual(counted.outcome);
    expect([outcome.contentBytes, text]).toEqual([0, counted.text]);
  });

  it("forwards bytes that are neither JSON nor UTF-8 unchanged", () => {
    const odd = [...bytesOf("data: {nonsense\n\ndata: 7\n\nretry: 5\n\n"), ...bytesOf("data: "), 0xff, 0xc3, 10, 10];
    const chunk = new Uint8Array([...odd, ...bytesOf(chatEvents.join(""))]);
    const { sent, outcome } = play([chunk], { costUsdOf: () => null });
    expect(sent).toEqual(chunk);
    expect(outcome).toMatchObject({ complete: true, usage: chatUsage, events: 9 });
  });

  it("reads the usage of an event with broken UTF-8, and keeps its bytes", () => {
    const [before = "", after = ""] = (chatEvents[5] ?? "").split("B9");
    const event = new Uint8Array([...bytesOf(before), 0xff, ...bytesOf(after)]);
    const { sent, outcome } = play([event, bytesOf("data: [DONE]\n\n")], {});
    expect(sent).toEqual(new Uint8Array([...event, ...bytesOf("data: [DONE]\n\n")]));
    expect(outcome.usage).toEqual(chatUsage);
  });
});
