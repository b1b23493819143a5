import { describe, expect, it } from "vitest";
import { TRACESTATE_CHARS_MAX, TRACESTATE_MEMBER_CHARS_MAX, TRACESTATE_MEMBERS_MAX } from "../../src/limits.ts";
import {
  clientTraceId,
  contextUnder,
  isSampled,
  spanIdOf,
  traceContextOf,
  traceIdOf,
} from "../../src/trace-context.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN = "00f067aa0ba902b7";
const PARENT = `00-${TRACE}-${SPAN}-01`;

function contextOf(traceparent: string, tracestate?: string) {
  const context = traceContextOf(traceparent, tracestate);
  if (context === null) throw new Error(`${traceparent} is not read`);
  return context;
}

describe("traceparent", () => {
  it("names the client's trace and span, and whether the client records them", () => {
    const context = contextOf(PARENT);
    expect([traceIdOf(context), spanIdOf(context), isSampled(context)]).toEqual([TRACE, SPAN, true]);
    expect(isSampled(contextOf(`00-${TRACE}-${SPAN}-00`))).toBe(false);
    expect(isSampled(contextOf(`00-${TRACE}-${SPAN}-02`))).toBe(false);
    expect(context).toEqual({ parent: PARENT });
  });

  it("puts spans into the trace of the nearest client that records its span, else into none of theirs", () => {
    const [near, far] = [contextOf(PARENT), contextOf(`00-${"c".repeat(32)}-${SPAN}-01`)];
    const unrecorded = contextOf(`00-${TRACE}-${SPAN}-00`);
    expect(clientTraceId(near, far)).toBe(TRACE);
    expect(clientTraceId(unrecorded, far)).toBe("c".repeat(32));
    expect(clientTraceId(undefined, null, far)).toBe("c".repeat(32));
    expect(clientTraceId(unrecorded, undefined)).toBeNull();
  });

  it("of a later version is read as far as this one goes, and passed along as this one", () => {
    expect(contextOf(`cc-${TRACE}-${SPAN}-01-what-the-future-will-be`)).toEqual({ parent: PARENT });
    expect(contextOf(`cc-${TRACE}-${SPAN}-01`)).toEqual({ parent: PARENT });
    // Flags that no version has defined so far are not passed along.
    expect(contextOf(`00-${TRACE}-${SPAN}-ff`)).toEqual({ parent: `00-${TRACE}-${SPAN}-03` });
  });

  it.each([
    ["an absent one", undefined],
    ["an empty one", ""],
    ["the forbidden version", `ff-${TRACE}-${SPAN}-01`],
    ["a trace of zeros", `00-${"0".repeat(32)}-${SPAN}-01`],
    ["a span of zeros", `00-${TRACE}-${"0".repeat(16)}-01`],
    ["upper case", PARENT.toUpperCase()],
    ["a short trace", `00-${TRACE.slice(1)}-${SPAN}-01`],
    ["a long span", `00-${TRACE}-${SPAN}0-01`],
    ["more than this version has", `${PARENT}-00`],
    ["a later version that goes on without a dash", `cc-${TRACE}-${SPAN}-01.x`],
    ["flags of one digit", `00-${TRACE}-${SPAN}-1`],
    ["two of them, as fetch joins them", `${PARENT}, ${PARENT}`],
  ])("is ignored with its state: %s", (_, header) => {
    expect(traceContextOf(header, "a=b")).toBeNull();
  });

  it("of what a span calls has the span's id, and the rest as it was", () => {
    const under = contextUnder(contextOf(`00-${TRACE}-${SPAN}-00`, "a=b"), "b7ad6b7169203331");
    expect(under).toEqual({ parent: `00-${TRACE}-b7ad6b7169203331-00`, state: "a=b" });
  });
});

describe("tracestate", () => {
  const stateOf = (header: string) => contextOf(PARENT, header).state;

  it("is passed along in its order, without blanks and empty members", () => {
    expect(stateOf("rojo=00f067aa0ba902b7 ,\tcongo=t61rcWkgMzE,,")).toBe("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE");
    expect(stateOf("fw529a3039@dt=FfAy-Y;~ 3")).toBe("fw529a3039@dt=FfAy-Y;~ 3");
    expect(stateOf("0tenant@v=1")).toBe("0tenant@v=1");
  });

  it.each(["", " , ", "no-value", "Upper=1", "a=", "a=b=c", "=b", "a=1,a=2", "a=ü", "a=\u0007", "0digit=1"])(
    "%j is ignored, and traceparent is not",
    (header) => {
      expect(stateOf(header)).toBeUndefined();
    },
  );

  it("has at most as many members as the standard allows", () => {
    const members = Array.from({ length: TRACESTATE_MEMBERS_MAX }, (_, at) => `k${at}=v`);
    expect(stateOf(members.join(","))).toBe(members.join(","));
    expect(stateOf([...members, "last=v"].join(","))).toBeUndefined();
  });

  it("loses long members first, and then the last ones, until it is within its bound", () => {
    const short = (key: string, chars: number) => `${key}=${"v".repeat(chars - key.length - 1)}`;
    const long = short("long", TRACESTATE_MEMBER_CHARS_MAX + 1);
    const fitting = [1, 2, 3].map((at) => short(`k${at}`, TRACESTATE_MEMBER_CHARS_MAX));
    // Alone within the bound, a long member stays.
    expect(stateOf(long)).toBe(long);
    const rest = short("k4", TRACESTATE_CHARS_MAX - 3 * (TRACESTATE_MEMBER_CHARS_MAX + 1));
    const whole = [...fitting, rest].join(",");
    expect(whole).toHaveLength(TRACESTATE_CHARS_MAX);
    expect(stateOf(whole)).toBe(whole);
    expect(stateOf([long, ...fitting, rest].join(","))).toBe(whole);
    expect(stateOf([...fitting, rest, "k5=v"].join(","))).toBe(whole);
  });
});
