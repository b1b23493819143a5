import { describe, expect, it } from "vitest";
import { parseAfter, parseClientEvents, parseUsageQuery } from "../../../src/contract/events.ts";
import type { Parsed } from "../../../src/contract/errors.ts";
import { CLIENT_EVENT_BYTES_MAX, CLIENT_EVENTS_PER_POST_MAX, JSON_DEPTH_MAX } from "../../../src/limits.ts";

const EVENT = { event_type: "final_result" };

function accepted(value: unknown): { event: unknown; json: string }[] {
  const read = parseClientEvents(value);
  if (!read.ok) throw new Error(JSON.stringify(read.reason));
  return read.value;
}

function refusal(read: Parsed<unknown>): { param: unknown; message: string } {
  if (read.ok || read.reason.reason !== "invalid_request") throw new Error("expected a refusal");
  return read.reason;
}

const param = (value: unknown): unknown => refusal(parseClientEvents(value)).param;

/** `levels` of nesting, the event itself not counted. */
function nested(levels: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < levels; level++) value = [value];
  return value;
}

describe("a client's events", () => {
  it("may be one or a list, and are kept as they were sent", () => {
    expect(accepted(EVENT)).toEqual([{ event: EVENT, json: '{"event_type":"final_result"}' }]);
    expect(accepted([EVENT, EVENT])).toHaveLength(2);
    expect(accepted([])).toEqual([]);
  });

  it("may say everything that programs in the field say", () => {
    const event = {
      event_type: "execution_result",
      parallel_group_id: "pg-1763712000000-k3j9x2",
      step: 3,
      code: "print(1)",
      output: "1\n\u2028</script>",
      hasError: false,
      reasoning: null,
      usage: { prompt_tokens: 4, details: { cached: 1 } },
      timestamps: { start: "2026-11-21T13:00:00Z" },
      data: [{ deep: { null: null } }, 1.5, "😀"],
    };
    const [read] = accepted(event);
    expect(JSON.parse(read?.json ?? "")).toEqual(event);
    expect(read?.json).not.toContain("\n");
  });

  it("are a thousand to a request, and not one more", () => {
    const many = Array.from({ length: CLIENT_EVENTS_PER_POST_MAX }, () => EVENT);
    expect(CLIENT_EVENTS_PER_POST_MAX).toBe(1_000);
    expect(accepted(many)).toHaveLength(1_000);
    expect(refusal(parseClientEvents([...many, EVENT])).message).toContain("1001 events; expected at most 1000");
  });

  it("are as large as is said, in bytes of UTF-8", () => {
    const frame = '{"event_type":"final_result","output":""}'.length;
    const room = CLIENT_EVENT_BYTES_MAX - frame;
    expect(CLIENT_EVENT_BYTES_MAX).toBe(131_072);
    expect(accepted({ ...EVENT, output: "a".repeat(room) })[0]?.json).toHaveLength(CLIENT_EVENT_BYTES_MAX);
    expect(refusal(parseClientEvents({ ...EVENT, output: "a".repeat(room + 1) })).message).toContain("131072 bytes");
    accepted({ ...EVENT, output: `a${"é".repeat((room - 1) / 2)}` });
    expect(param([EVENT, { ...EVENT, output: `aa${"é".repeat((room - 1) / 2)}` }])).toBe("[1]");
  });

  it("nest as deep as is said", () => {
    accepted({ ...EVENT, data: nested(JSON_DEPTH_MAX - 1) });
    expect(refusal(parseClientEvents({ ...EVENT, data: nested(JSON_DEPTH_MAX) })).message).toContain("nesting");
    expect(param([{ ...EVENT, data: nested(5_000) }])).toBe("[0]");
  });
});

describe("the name of a client's event", () => {
  it.each(["a", "code_generated", "final_result2", `a${"b".repeat(63)}`])("may be %s", (name) => {
    accepted({ event_type: name });
  });

  it.each(["", "A", "_a", "1a", "a-b", "a b", "a\n", "é", `a${"b".repeat(64)}`, 7, null])("may not be %j", (name) => {
    expect(param({ event_type: name })).toBe("event_type");
  });

  it.each([
    "run_opened",
    "run_closed",
    "child_opened",
    "child_closed",
    "group_started",
    "confirmation_awaited",
    "group_confirmed",
    "group_paused",
    "group_resumed",
    "group_completed",
    "attempt_started",
    "attempt_ended",
    "retry_scheduled",
    "throttled",
    "slot_completed",
    "slots_cancelled",
    "slot_skipped",
    "budget_refused",
    "overrun",
    "tool_called",
  ])("may not be the gateway's own %s: nobody forges a bill", (name) => {
    expect(refusal(parseClientEvents({ event_type: name }))).toMatchObject({
      param: "event_type",
      message: expect.stringContaining("gateway's own"),
    });
  });
});

describe("what a client's event may not hold", () => {
  it.each(["seq", "ts", "run_id", "parent_run_id", "depth", "index", "__proto__"])(
    "is the gateway's to say, or unknown: %s",
    (field) => {
      const sent: unknown = JSON.parse(`{"event_type":"a","${field}":1}`);
      const { message } = refusal(parseClientEvents(sent));
      expect(message).toContain(field);
    },
  );

  it.each([
    ["step", -1],
    ["step", 1.5],
    ["hasError", "no"],
    ["code", 5],
    ["usage", []],
    ["parallel_group_id", "run_1"],
    ["parallel_group_id", "pg-1763712000000-k3j9x2/../x"],
    ["parallel_group_id", "pg-1763712000000-k3j9x2\n"],
  ])("is a %s of %j", (field, value) => {
    expect(param({ ...EVENT, [field]: value })).toBe(field);
    expect(param([EVENT, { ...EVENT, [field]: value }])).toBe(`[1].${field}`);
  });

  it.each([null, 1, "text", true])("is anything but an object: %j", (value) => {
    expect(parseClientEvents(value).ok).toBe(false);
    expect(param([value])).toBe("[0]");
  });
});

describe("the place after which a reader continues", () => {
  it("is the beginning, the query's or the header's, which is the newer", () => {
    expect(parseAfter({}, undefined)).toEqual({ ok: true, value: 0 });
    expect(parseAfter({ after: "17" }, undefined)).toEqual({ ok: true, value: 17 });
    expect(parseAfter({ after: "17" }, "99")).toEqual({ ok: true, value: 99 });
    expect(parseAfter({ after: "17" }, "")).toEqual({ ok: true, value: 17 });
    expect(parseAfter({}, "999999999999999")).toEqual({ ok: true, value: 999_999_999_999_999 });
  });

  it("is a number, else refused by the name of where it stood", () => {
    for (const after of ["-1", "1.5", "x"]) expect(refusal(parseAfter({ after }, undefined)).param).toBe("after");
    for (const id of ["-1", "1.5", "x", "1e3", " 1", "1000000000000000"])
      expect(refusal(parseAfter({}, id)).param).toBe("last-event-id");
  });
});

describe("the query of usage", () => {
  it("has 1 or 0, or nothing", () => {
    const of = (query: Record<string, string>) => parseUsageQuery(query);
    expect(of({})).toEqual({ ok: true, value: { reset: false, subtree: false } });
    expect(of({ reset: "0", subtree: "1" })).toEqual({ ok: true, value: { reset: false, subtree: true } });
    expect(of({ reset: "1" })).toEqual({ ok: true, value: { reset: true, subtree: false } });
    expect(refusal(of({ reset: "yes" })).param).toBe("reset");
    expect(refusal(of({ subtree: "all" })).param).toBe("subtree");
  });
});
