/** Draws the visible part of the timeline. Only rows on the screen cost anything, however many there are. */
import type { Call, CallState } from "../../src/log/picture/call.ts";
import { endedIn } from "../../src/log/picture/group.ts";
import { nameOf } from "../model/call.ts";
import { countText, durationText } from "../model/format.ts";
import type { Rows } from "../model/rows.ts";
import type { InFlight, Phase } from "../model/run-state.ts";
import type { ColourOf } from "./colours.ts";

export const ROW_PX = 16;
/** Width of the column with the rows' names, on a wide and on a narrow screen. */
const NAMES_PX = 150;
const NARROW_NAMES_PX = 96;
const NARROW_PX = 520;
const CURVE_PX = 56;
/** Height of the band with the calls that ended, and with those that failed. */
const BAND_PX = 34;
const FAILED_PX = 10;
const BIN_PX = 3;
const TEXT_PX = 11;

/** The part of the run's time that is shown. */
export type Span = { fromMs: number; toMs: number };

type Colours = Record<CallState | "text" | "dim" | "line" | "queue" | "retry", string>;

/** The page's colours, which depend on the reader's light or dark setting. */
function coloursOf(element: Element): Colours {
  const style = getComputedStyle(element);
  const read = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return {
    ...{ running: read("running"), waiting: read("reserved"), completed: read("completed"), failed: read("failed") },
    ...{ cancelled: read("cancelled"), text: read("text"), dim: read("dim"), line: read("line"), queue: read("queue") },
    retry: read("estimated"),
  };
}

function namesPx(width: number): number {
  return width < NARROW_PX ? NARROW_NAMES_PX : NAMES_PX;
}

type Prepared = { context: CanvasRenderingContext2D; width: number; height: number; isBlank: boolean };

/** Fits a canvas to its place in device pixels. Its context, in CSS pixels; its size; whether that has changed, which blanks it. */
function prepared(canvas: HTMLCanvasElement): Prepared | null {
  const context = canvas.getContext("2d");
  if (context === null) return null;
  const { clientWidth: width, clientHeight: height } = canvas;
  const ratio = devicePixelRatio;
  const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
  const isBlank = canvas.width !== wide || canvas.height !== high;
  if (canvas.width !== wide) canvas.width = wide;
  if (canvas.height !== high) canvas.height = high;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.font = `${TEXT_PX}px system-ui, sans-serif`;
  context.textBaseline = "middle";
  return { context, width, height, isBlank };
}

/** `colourOf`: the colour of a call's last attempt; null = that of its state. */
export type Drawing = { span: Span; nowMs: number; colourOf: ColourOf | null };

/** Where the picture of a list is, px from its top, and the part of it to draw; null = all of it. */
type Part = { topPx: number; only: { fromPx: number; toPx: number } | null };

/** Draws the lines of a list that a canvas covers, or some of them; their backgrounds stay as they are. */
export function drawRows(canvas: HTMLCanvasElement, rows: Rows, part: Part, { span, nowMs, colourOf }: Drawing): void {
  const ready = prepared(canvas);
  if (ready === null) return;
  const { context, width, height, isBlank } = ready;
  const only = isBlank || part.only === null ? { fromPx: part.topPx, toPx: part.topPx + height } : part.only;
  const colours = coloursOf(canvas);
  const xOf = xIn(span, width);
  const first = Math.floor(only.fromPx / ROW_PX);
  const end = Math.min(rows.length, Math.ceil(only.toPx / ROW_PX));
  const [fromY, toY] = [first * ROW_PX - part.topPx, Math.ceil(only.toPx / ROW_PX) * ROW_PX - part.topPx];
  context.clearRect(0, fromY, width, toY - fromY);
  for (let at = first; at < end; at++) {
    const row = rows.at(at);
    if (row === null) continue;
    const y = at * ROW_PX - part.topPx;
    if (row.kind === "call") drawCall(context, row.call, { y, xOf, nowMs, colours, colourOf, left: namesPx(width) });
    else {
      const { number, tasks, startMs, endMs, count } = row.group;
      const ended = endedIn(row.group);
      const left = namesPx(width);
      drawName(context, `${tasks === null ? "group" : "graph"} ${number}`, { y, left, colour: colours.text });
      context.fillStyle = colours.line;
      fillSpan(context, [xOf(startMs), xOf(endMs ?? nowMs)], { y: y + ROW_PX - 3, height: 2, left });
      context.fillStyle = colours.dim;
      const took = endMs === null ? "" : `, ${durationText(endMs - startMs)}`;
      context.fillText(`${countText(ended)} of ${countText(count)}${took}`, left + 4, y + ROW_PX / 2 - 1);
    }
  }
  // What reaches left of the shown time must not cover the names.
  context.fillStyle = colours.line;
  context.fillRect(namesPx(width) - 1, fromY, 1, toY - fromY);
}

type Place = {
  y: number;
  xOf: (ms: number) => number;
  nowMs: number;
  colours: Colours;
  colourOf: ColourOf | null;
  left: number;
};

function drawCall(context: CanvasRenderingContext2D, call: Call, place: Place): void {
  const { y, xOf, nowMs, colours, colourOf, left } = place;
  drawName(context, nameOf(call), { y, left, colour: call.state === "failed" ? colours.failed : colours.dim });
  context.fillStyle = colours.queue;
  fillSpan(context, [xOf(call.queuedMs), xOf(call.endMs ?? nowMs)], { y: y + ROW_PX / 2 - 1, height: 2, left });
  for (const [at, { startMs, endMs, outcome, target }] of call.attempts.entries()) {
    const isLast = at === call.attempts.length - 1;
    const state = endMs === null ? "running" : isLast && call.endMs !== null ? call.state : "waiting";
    const isFollowed = outcome !== null && outcome !== "success" && !isLast;
    context.fillStyle = isFollowed ? colours.retry : (colourOf?.(call, target) ?? colours[state]);
    fillSpan(context, [xOf(startMs), xOf(endMs ?? nowMs)], { y: y + 3, height: ROW_PX - 6, left });
  }
  if (call.replayed) {
    // A recorded answer took no attempt: an outline where it came.
    context.strokeStyle = colours.completed;
    const x = Math.max(left, xOf(call.endMs ?? nowMs));
    context.strokeRect(x + 0.5, y + 3.5, ROW_PX - 9, ROW_PX - 7);
  }
}

type Named = { y: number; left: number; colour: string };

function drawName(context: CanvasRenderingContext2D, name: string, { y, left, colour }: Named): void {
  context.fillStyle = colour;
  const chars = Math.floor((left - 8) / NAME_CHAR_PX);
  const text = name.length > chars ? `${name.slice(0, chars - 1)}…` : name;
  context.fillText(text, 4, y + ROW_PX / 2, left - 8);
}

/** A letter of the names is about so wide. */
const NAME_CHAR_PX = 6.2;

/** Fills from one x to another; at least a pixel, and nothing left of the rows' names. */
function fillSpan(
  context: CanvasRenderingContext2D,
  [from, to]: readonly [number, number],
  { y, height, left }: { y: number; height: number; left: number },
): void {
  if (to < left) return;
  const start = Math.max(left, from);
  context.fillRect(start, y, Math.max(1, to - start), height);
}

function xIn({ fromMs, toMs }: Span, width: number): (ms: number) => number {
  const left = namesPx(width);
  const scale = (width - left) / Math.max(1, toMs - fromMs);
  return (ms) => left + (ms - fromMs) * scale;
}

/** A line above the curve: how many calls may be in flight. */
export type Limit = { name: string; count: number };

type Curve = { inFlight: readonly InFlight[]; mostInFlight: number; phases: readonly Phase[] };

/** Draws how many calls were in flight over the shown time, with the phases of the work and what limits their number. */
export function drawCurve(
  canvas: HTMLCanvasElement,
  { inFlight, mostInFlight, phases }: Curve,
  { span, limits }: { span: Span; limits: readonly Limit[] },
): void {
  const ready = prepared(canvas);
  if (ready === null) return;
  const { context, width, height } = ready;
  context.clearRect(0, 0, width, height);
  const colours = coloursOf(canvas);
  const left = namesPx(width);
  const most = Math.max(1, mostInFlight);
  // A limit far above everything would make the curve flat.
  const shown = limits.filter(({ count }) => count <= most * LIMIT_SHARE_MAX);
  const top = shown.reduce((max, { count }) => Math.max(max, count), most);
  const xOf = xIn(span, width);
  const yOf = (count: number) => CURVE_PX - 2 - (count / top) * (CURVE_PX - 14);
  context.beginPath();
  context.moveTo(left, yOf(0));
  const last = traceCurve(context, inFlight, { xOf, yOf, width, left });
  context.lineTo(xOf(span.toMs), yOf(last));
  context.lineTo(xOf(span.toMs), yOf(0));
  context.fillStyle = colours.queue;
  context.fill();
  context.strokeStyle = colours.running;
  context.stroke();
  for (const { name, count } of shown) {
    context.fillStyle = colours.retry;
    context.fillRect(left, yOf(count), width - left, 1);
    context.fillText(`${name} ${countText(count)}`, left + 6, Math.max(6, yOf(count) - 6));
  }
  context.fillStyle = colours.dim;
  for (const { atMs, name } of phases) {
    const x = xOf(atMs);
    if (x < left || x > width) continue;
    context.fillRect(x, 0, 1, CURVE_PX);
    context.fillText(name.slice(0, PHASE_CHARS), x + 3, CURVE_PX - 8);
  }
  context.fillText("in flight", 4, 10);
  context.fillText(`at most ${countText(most)}`, 4, 26, left - 8);
  context.fillText(durationText(Math.max(0, span.toMs - span.fromMs)), width - 70, 8);
}

/**
 * Draws how many calls ended over the shown time, and below it how many of them failed, so that a failure is seen among thousands of
 * rows.
 */
export function drawBand(canvas: HTMLCanvasElement, calls: readonly Call[], span: Span): void {
  const ready = prepared(canvas);
  if (ready === null) return;
  const { context, width, height } = ready;
  context.clearRect(0, 0, width, height);
  const [colours, left, xOf] = [coloursOf(canvas), namesPx(width), xIn(span, width)];
  const bins = Math.max(1, Math.floor((width - left) / BIN_PX));
  const [ended, failed] = [new Uint32Array(bins), new Uint32Array(bins)];
  for (const { endMs, state } of calls) {
    if (endMs === null || endMs < span.fromMs || endMs > span.toMs) continue;
    const bin = Math.min(bins - 1, Math.floor((xOf(endMs) - left) / BIN_PX));
    ended[bin] = (ended[bin] ?? 0) + 1;
    if (state === "failed") failed[bin] = (failed[bin] ?? 0) + 1;
  }
  const [mostEnded, mostFailed] = [Math.max(1, ...ended), Math.max(1, ...failed)];
  const base = BAND_PX - FAILED_PX - 2;
  for (let bin = 0; bin < bins; bin++) {
    const [count, failures] = [ended[bin] ?? 0, failed[bin] ?? 0];
    const x = left + bin * BIN_PX;
    context.fillStyle = colours.completed;
    if (count > 0) context.fillRect(x, base, BIN_PX - 1, -Math.max(1, (count / mostEnded) * (base - 2)));
    context.fillStyle = colours.failed;
    if (failures > 0) context.fillRect(x, base + 2, BIN_PX - 1, Math.max(3, (failures / mostFailed) * FAILED_PX));
  }
  context.fillStyle = colours.dim;
  context.fillText("ended", 4, 10);
  context.fillStyle = mostFailed > 0 && calls.some(({ state }) => state === "failed") ? colours.failed : colours.dim;
  context.fillText("failed", 4, BAND_PX - 8);
}

/** A limit is shown if it is at most so many times what was in flight. */
const LIMIT_SHARE_MAX = 3;
const PHASE_CHARS = 24;

type Axes = { xOf: (ms: number) => number; yOf: (count: number) => number; width: number; left: number };

/**
 * Adds the points to the path, of those that share a pixel the highest and the last: a run has more points than a screen has
 * pixels. Returns the last count.
 */
function traceCurve(
  context: CanvasRenderingContext2D,
  points: readonly InFlight[],
  { xOf, yOf, width, left }: Axes,
): number {
  let count = 0;
  let pixel = left;
  let highest = 0;
  for (const point of points) {
    const x = Math.floor(Math.max(left, xOf(point.atMs)));
    if (x > width) break;
    if (x !== pixel) {
      context.lineTo(pixel, yOf(highest));
      context.lineTo(pixel, yOf(count));
      context.lineTo(x, yOf(count));
      pixel = x;
      highest = count;
    }
    highest = Math.max(highest, point.count);
    count = point.count;
  }
  context.lineTo(pixel, yOf(highest));
  context.lineTo(pixel, yOf(count));
  return count;
}
