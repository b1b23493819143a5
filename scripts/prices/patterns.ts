/** Match rules of the price data as plain patterns: lower case, `*` at either end, `#` for a digit. */

/** A match rule as the price data states it; the package compares in lower case. */
export type Match =
  | { equals: string }
  | { starts_with: string }
  | { ends_with: string }
  | { contains: string }
  | { regex: string }
  | { or: Match[] }
  | { and: Match[] };

/** Patterns of matching names, and of names that are excluded although they fit one of those. */
export type Patterns = { patterns: string[]; except: string[] };

/** The data's form of "not a speech model". */
const NOT_SPEECH = "^(?!.*-[tT][tT][sS](?:$|-))";
const SPEECH = ["*-tts", "*-tts-*"];

/** The patterns of a rule. Throws if a rule has none. */
export function patternsOf(match: Match): Patterns {
  if ("equals" in match) return only(plain(match.equals));
  if ("starts_with" in match) return only(`${plain(match.starts_with)}*`);
  if ("ends_with" in match) return only(`*${plain(match.ends_with)}`);
  if ("contains" in match) return only(`*${plain(match.contains)}*`);
  if ("regex" in match) return only(digitPattern(match.regex));
  if ("or" in match) {
    const parts = match.or.map(patternsOf);
    return {
      patterns: [...new Set(parts.flatMap(({ patterns }) => patterns))],
      except: parts.flatMap(({ except }) => except),
    };
  }
  const [rule, condition, ...more] = match.and;
  if (rule === undefined || condition === undefined || more.length > 0) throw unknown(match);
  if (!("regex" in condition) || condition.regex !== NOT_SPEECH) throw unknown(match);
  return { patterns: patternsOf(rule).patterns, except: SPEECH };
}

/** A regular expression of literals and digits, anchored at its start: `^o-\d{2}$` is `o-##`. */
function digitPattern(regex: string): string {
  const [, body = "", end] = /^\^((?:[\w/-]|\\[.[\]]|\[|=|\\d(?:\{\d\})?)+)(\$?)$/.exec(regex) ?? [];
  if (body === "") throw unknown({ regex });
  const text = body
    .replaceAll(/\\d(?:\{(\d)\})?/g, (_, times: string | undefined) => "#".repeat(Number(times ?? 1)))
    .replaceAll("\\", "");
  return `${text.toLowerCase()}${end === "$" ? "" : "*"}`;
}

function plain(text: string): string {
  if (text === "" || /[*#]/.test(text)) throw unknown({ equals: text });
  return text.toLowerCase();
}

function only(pattern: string): Patterns {
  return { patterns: [pattern], except: [] };
}

function unknown(match: Match): Error {
  return new Error(`cannot write this match rule as a pattern: ${JSON.stringify(match)}`);
}
