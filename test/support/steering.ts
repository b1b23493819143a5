/**
 * How a test controls a fake upstream, in one grammar: words and arguments separated by slashes, such as
 * `delay/50/status/503/first/2`. The words are in the base URL before `/v1`, in the model's name, or in the prompt
 * between double braces; where a word is given twice, the prompt wins over the model and the model over the URL.
 *
 * | words          | effect |
 * |----------------|--------|
 * | `echo`         | nothing: answer at once with the prompt as text and with usage |
 * | `delay/MS`     | answer after MS |
 * | `jitter/MS`    | answer after 0 … MS more, a fixed draw per prompt |
 * | `barrier/K`    | answer only when K calls wait at this barrier at once; else 504 |
 * | `latch/NAME`   | answer only once the test has opened the latch of that name; it stays open |
 * | `early/1`      | answers a request for a stream with its headers at once, and with the rest when the other words let it |
 * | `within/MS`    | how long a barrier waits before its 504; 30,000 if not given |
 * | `status/CODE`  | answer with that status and an OpenAI error body |
 * | `retry-after/S`| send that header with a failure |
 * | `fault/NAME`   | a broken answer; names in `FAULTS` |
 * | `first/N`      | status and fault hit only the first N sends of each prompt |
 * | `until/NAME`   | status and fault hit only until the test has opened the latch of that name |
 * | `percent/P`    | status and fault hit only P % of the prompts, a fixed draw per prompt |
 * | `template/N`   | in a model's name: N tokens are added to each prompt's usage, as a chat template adds them |
 * | `key/NAME`     | count (and meet at barriers) apart from calls with another key; the URL's host is the default key |
 */
export const FAULTS = [
  "html",
  "truncated",
  "empty",
  "not-json",
  "error-200",
  "no-usage",
  "no-choices",
  "null-content",
  "reset",
  "hang",
  "huge",
] as const;
export type Fault = (typeof FAULTS)[number];

export type Steering = {
  key: string | null;
  delayMs: number;
  jitterMs: number;
  barrier: number | null;
  withinMs: number;
  latch: string | null;
  /** Whether the headers of a stream come before everything that the other words make a call wait for. */
  hasEarlyHeaders: boolean;
  status: number | null;
  retryAfterS: number | null;
  fault: Fault | null;
  failFirst: number | null;
  failUntil: string | null;
  failPercent: number | null;
};

const NEUTRAL: Steering = {
  key: null,
  delayMs: 0,
  jitterMs: 0,
  barrier: null,
  withinMs: 30_000,
  latch: null,
  hasEarlyHeaders: false,
  status: null,
  retryAfterS: null,
  fault: null,
  failFirst: null,
  failUntil: null,
  failPercent: null,
};

/** The steering of one call. Words that the grammar does not know are passed over: they are the rest of a model's name. */
export function steer(source: { path: string; model: string; prompt: string }): Steering {
  const inPrompt = [...source.prompt.matchAll(/\{\{([^{}]*)\}\}/g)].map((match) => match[1] ?? "");
  const words = [source.path.replace(/\/v1\/.*$/, ""), source.model, ...inPrompt].join("/").split("/");
  const steering = { ...NEUTRAL };
  for (let at = 0; at < words.length; at += 1) {
    if (apply(steering, words[at] ?? "", words[at + 1] ?? "")) at += 1;
  }
  return steering;
}

function apply(steering: Steering, word: string, argument: string): boolean {
  if (word === "key") steering.key = argument;
  else if (word === "fault") steering.fault = FAULTS.find((name) => name === argument) ?? null;
  else if (word === "delay") steering.delayMs = Number(argument);
  else if (word === "jitter") steering.jitterMs = Number(argument);
  else if (word === "barrier") steering.barrier = Number(argument);
  else if (word === "latch") steering.latch = argument;
  else if (word === "early") steering.hasEarlyHeaders = argument === "1";
  else if (word === "within") steering.withinMs = Number(argument);
  else if (word === "status") steering.status = Number(argument);
  else if (word === "retry-after") steering.retryAfterS = Number(argument);
  else if (word === "first") steering.failFirst = Number(argument);
  else if (word === "until") steering.failUntil = argument;
  else if (word === "percent") steering.failPercent = Number(argument);
  else return false;
  return true;
}

/** A draw in [0, 1) that depends on the text alone, so that a test knows which prompts fail and can say so beforehand. */
export function drawOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 15), 0x85ebca6b);
  return ((hash ^ (hash >>> 13)) >>> 0) / 2 ** 32;
}

/** Whether `percent/P` hits this prompt: a test uses it to say which slots must fail. */
export function isHit(prompt: string, percent: number): boolean {
  return drawOf(prompt) * 100 < percent;
}

/** Whether this send of a prompt (numbered from 1) is to fail. `isOpen`: whether the test has opened a latch. */
export function fails(steering: Steering, prompt: string, send: number, isOpen: (latch: string) => boolean): boolean {
  if (steering.status === null && steering.fault === null) return false;
  if (steering.failFirst !== null && send > steering.failFirst) return false;
  if (steering.failUntil !== null && isOpen(steering.failUntil)) return false;
  return steering.failPercent === null || isHit(prompt, steering.failPercent);
}
