/** Draws the visible part of the timeline. Only rows on the screen cost anything, however many there are. */
import { nameOf, type Call, type CallState } from "../model/call.ts";
import { countText, durationText } from "../model/format.ts";
import type { Rows } from "../model/rows.ts";
import type { InFlight, Phase } from "../model/run-state.ts";
import type { ColourOf } from "./colours.ts";

export const ROW_PX = 16;
/** Width of the column with the rows' names. */
const NAMES_PX = 120;
const CURVE_PX = 56;
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
    if (row.kind === "call") drawCall(context, row.call, { y, xOf, nowMs, colours, colourOf });
    else {
      const { id, startMs, endMs, ended, count } = row.group;
      drawName(context, id, { y, colour: colours.text });
      context.fillStyle = colours.line;
      fillSpan(context, xOf(startMs), xOf(endMs ?? nowMs), y + ROW_PX - 3, 2);
      context.fillStyle = colours.dim;
      const took = endMs === null ? "" : `, ${durationText(endMs - startMs)}`;
      context.fillText(`${countText(ended)} of ${countText(count)}${took}`, NAMES_PX + 4, y + ROW_PX / 2 - 1);
    }
  }
  // What reaches left of the shown time must not cover the names.
  context.fillStyle = colours.line;
  context.fillRect(NAMES_PX - 1, fromY, 1, toY - fromY);
}

type Place = { y: number; xOf: (ms: number) => number; nowMs: number; colours: Colours; colourOf: ColourOf | null };

function drawCall(context: CanvasRenderingContext2D, call: Call, { y, xOf, nowMs, colours, colourOf }: Place): void {
  drawName(context, nameOf(call), { y, colour: call.state === "failed" ? colours.failed : colours.dim });
  context.fillStyle = colours.queue;
  fillSpan(context, xOf(call.queuedMs), xOf(call.endMs ?? nowMs), y + ROW_PX / 2 - 1, 2);
  for (const [at, { startMs, endMs, outcome, target }] of call.attempts.entries()) {
    const isLast = at === call.attempts.length - 1;
    const state = endMs === null ? "running" : isLast && call.endMs !== null ? call.state : "waiting";
    const isFollowed = outcome !== null && outcome !== "success" && !isLast;
    context.fillStyle = isFollowed ? colours.retry : (colourOf?.(call, target) ?? colours[state]);
    fillSpan(context, xOf(startMs), xOf(endMs ?? nowMs), y + 3, ROW_PX - 6);
  }
  if (call.replayed) {
    // A recorded answer took no attempt: an outline where it came.
    context.strokeStyle = colours.completed;
    const x = Math.max(NAMES_PX, xOf(call.endMs ?? nowMs));
    context.strokeRect(x + 0.5, y + 3.5, ROW_PX - 9, ROW_PX - 7);
  }
}

function drawName(context: CanvasRenderingContext2D, name: string, { y, colour }: { y: number; colour: string }): void {
  context.fillStyle = colour;
  const text = name.length > 18 ? `${name.slice(0, 17)}…` : name;
  context.fillText(text, 4, y + ROW_PX / 2, NAMES_PX - 8);
}

/** Fills from one x to another; at least a pixel, and nothing left of the rows' names. */
function fillSpan(context: CanvasRenderingContext2D, from: number, to: number, y: number, height: number): void {
  if (to < NAMES_PX) return;
  const start = Math.max(NAMES_PX, from);
  context.fillRect(start, y, Math.max(1, to - start), height);
}

function xIn({ fromMs, toMs }: Span, width: number): (ms: number) => number {
  const scale = (width - NAMES_PX) / Math.max(1, toMs - fromMs);
  return (ms) => NAMES_PX + (ms - fromMs) * scale;
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
  const most = Math.max(1, mostInFlight);
  // A limit far above everything would make the curve flat.
  const shown = limits.filter(({ count }) => count <= most * LIMIT_SHARE_MAX);
  const top = shown.reduce((max, { count }) => Math.max(max, count), most);
  const xOf = xIn(span, width);
  const yOf = (count: number) => CURVE_PX - 2 - (count / top) * (CURVE_PX - 14);
  context.beginPath();
  context.moveTo(NAMES_PX, yOf(0));
  const last = traceCurve(context, inFlight, { xOf, yOf, width });
  context.lineTo(xOf(span.toMs), yOf(last));
  context.lineTo(xOf(span.toMs), yOf(0));
  context.fillStyle = colours.queue;
  context.fill();
  context.strokeStyle = colours.running;
  context.stroke();
  for (const { name, count } of shown) {
    context.fillStyle = colours.retry;
    context.fillRect(NAMES_PX, yOf(count), width - NAMES_PX, 1);
    context.fillText(`${name} ${countText(count)}`, NAMES_PX + 6, Math.max(6, yOf(count) - 6));
  }
  context.fillStyle = colours.dim;
  for (const { atMs, name } of phases) {
    const x = xOf(atMs);
    if (x < NAMES_PX || x > width) continue;
    context.fillRect(x, 0, 1, CURVE_PX);
    context.fillText(name.slice(0, PHASE_CHARS), x + 3, CURVE_PX - 8);
  }
  context.fillText("in flight", 4, 10);
  context.fillText(`at most ${countText(most)}`, 4, 26, NAMES_PX - 8);
  context.fillText(durationText(Math.max(0, span.toMs - span.fromMs)), width - 70, 8);
}

/** A limit is shown if it is at most so many times what was in flight. */
const LIMIT_SHARE_MAX = 3;
const PHASE_CHARS = 24;

type Axes = { xOf: (ms: number) => number; yOf: (count: number) => number; width: number };

/**
 * Adds the points to the path, of those that share a pixel the highest and the last: a run has more points than a screen has
 * pixels. Returns the last count.
 */
function traceCurve(context: CanvasRenderingContext2D, points: readonly InFlight[], { xOf, yOf, width }: Axes): number {
  let count = 0;
  let pixel = NAMES_PX;
  let highest = 0;
  for (const point of points) {
    const x = Math.floor(Math.max(NAMES_PX, xOf(point.atMs)));
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
