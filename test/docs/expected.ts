/** Compares what a block printed with what its page says. `…` stands for any text, in JSON also for any value. */

/** What is wrong with what was printed, or null. */
export function difference(form: "text" | "json", expected: string, printed: string): string | null {
  if (form === "text") {
    return pattern(expected.trimEnd()).test(printed.trimEnd()) ? null : `expected\n${expected}\nprinted\n${printed}`;
  }
  try {
    return unlike(JSON.parse(expected), JSON.parse(printed), "it");
  } catch (error) {
    return `${String(error)}; printed\n${printed}`;
  }
}

/**
 * Where a value differs. An object may have fields that the page does not show; an array has exactly the elements shown,
 * unless the last is "…".
 */
function unlike(expected: unknown, value: unknown, at: string): string | null {
  if (typeof expected === "string") {
    if (expected === "…") return null;
    return typeof value === "string" && pattern(expected).test(value) ? null : wrong(at, expected, value);
  }
  if (Array.isArray(expected)) {
    if (!Array.isArray(value)) return wrong(at, expected, value);
    const isOpen = expected.at(-1) === "…";
    const shown = isOpen ? expected.slice(0, -1) : expected;
    if (isOpen ? value.length < shown.length : value.length !== shown.length) return wrong(at, expected, value);
    return firstOf(shown.map((element, index) => unlike(element, value[index], `${at}[${index}]`)));
  }
  if (!isObject(expected)) return expected === value ? null : wrong(at, expected, value);
  if (!isObject(value)) return wrong(at, expected, value);
  return firstOf(
    Object.entries(expected).map(([name, field]) =>
      name in value ? unlike(field, value[name], `${at}.${name}`) : wrong(`${at}.${name}`, field, undefined),
    ),
  );
}

function firstOf(differences: (string | null)[]): string | null {
  return differences.find((difference) => difference !== null) ?? null;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function wrong(at: string, expected: unknown, value: unknown): string {
  return `${at} is ${JSON.stringify(value)}, not ${JSON.stringify(expected)}`;
}

/** The texts that a text with `…` in it means. */
function pattern(text: string): RegExp {
  return new RegExp(`^${text.split("…").map(escaped).join("[^]*?")}$`);
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}
