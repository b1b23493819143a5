/** A provider that writes its key word by word: whatever the words, no client can join them to the key. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SplitSecrets } from "../../../../../src/providers/formats/stream/split-secret.ts";
import { lookForSecret } from "../../../../../src/providers/relay/secret-filter.ts";

const KEY = "sk-proj-Zq7x0123456789abcdef";
const BLANK = "[redacted]";

/** What of the key may reach a client: its first characters, which are the same for everybody. */
const SHOWN = KEY.slice(0, 3);

type Family = { event: (text: string, index?: number) => string; other: string; textOf: (stream: string) => string };

const dataOf = (stream: string): unknown[] =>
  stream.split("\n").flatMap((line) => (/^data: [{]/.test(line) ? [JSON.parse(line.slice(6)) as unknown] : []));

const FAMILIES: Record<string, Family> = {
  chat: {
    event: (content, index = 0) =>
      `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", choices: [{ index, delta: { content } }] })}\n\n`,
    other: 'data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
    textOf: (stream) =>
      dataOf(stream)
        .map((each) => (each as { choices: { delta: { content?: string } }[] }).choices[0]?.delta.content ?? "")
        .join(""),
  },
  responses: {
    event: (delta, index = 0) =>
      `event: response.output_text.delta\ndata: ${JSON.stringify({ type: "response.output_text.delta", item_id: "i", output_index: index, content_index: 0, delta })}\n\n`,
    other: 'event: response.completed\ndata: {"type":"response.completed","response":{"id":"r"}}\n\n',
    textOf: (stream) =>
      dataOf(stream)
        .map((each) => (each as { delta?: string }).delta ?? "")
        .join(""),
  },
  messages: {
    event: (text, index = 0) =>
      `event: content_block_delta\ndata: ${JSON.stringify({ type: "content_block_delta", index, delta: { type: "text_delta", text } })}\n\n`,
    other: 'event: message_stop\ndata: {"type":"message_stop"}\n\n',
    textOf: (stream) =>
      dataOf(stream)
        .map((each) => (each as { delta?: { text?: string } }).delta?.text ?? "")
        .join(""),
  },
};

/** What a client gets of events that arrive one by one. */
function passed(events: readonly string[], secrets = [KEY]): { stream: string; pieces: string[] } {
  const split = new SplitSecrets(secrets, { blank: BLANK, look: lookForSecret });
  const decoded = (bytes: readonly Uint8Array[]): string =>
    bytes.map((each) => new TextDecoder().decode(each)).join("");
  const pieces = events.map((event) => decoded(split.feed([new TextEncoder().encode(event)])));
  pieces.push(decoded(split.end()));
  return { stream: pieces.join(""), pieces };
}

/** The key in pieces of these lengths; the last has the rest. */
function cut(lengths: readonly number[]): string[] {
  const words: string[] = [];
  let at = 0;
  for (const length of lengths) words.push(KEY.slice(at, (at += length)));
  return [...words, KEY.slice(at)];
}

describe.each(Object.entries(FAMILIES))("a key in a stream of %s", (_, { event, other, textOf }) => {
  const streamOf = (words: readonly string[]) => [...["My key is "], ...words, " so."].map((word) => event(word));

  it("is blanked wherever it is cut in two or three", () => {
    for (let first = 1; first < KEY.length; first++) {
      for (const second of [0, 1, 5]) {
        if (first + second >= KEY.length) continue;
        const text = textOf(passed([...streamOf(cut(second === 0 ? [first] : [first, second])), other]).stream);
        // What left before there were four characters of it is all that is seen of the key.
        expect([
          `My key is ${BLANK} so.`,
          ...[1, 2, 3].map((n) => `My key is ${KEY.slice(0, n)}${BLANK} so.`),
        ]).toContain(text);
      }
    }
  });

  it("is blanked character by character, and in the middle of words, twice", () => {
    const characters = textOf(passed([...streamOf([...KEY]), other]).stream);
    expect(characters).toBe(`My key is ${SHOWN}${BLANK} so.`);
    const words = [`x${KEY.slice(0, 9)}`, `${KEY.slice(9)}y${KEY.slice(0, 9)}`, `${KEY.slice(9)}z`];
    expect(textOf(passed([...streamOf(words), other]).stream)).toBe(`My key is x${BLANK}y${BLANK}z so.`);
  });

  it("is blanked in each of several answers that are written in turns", () => {
    const events = cut([6, 6, 6]).flatMap((word) => [event(word, 0), event(word, 1)]);
    const { stream } = passed([...events, other]);
    expect(textOf(stream)).toBe(BLANK.repeat(2));
  });

  it("leaves every other event as it came, and holds it only while it may be a key", () => {
    const plain = [event("glass"), event("es, sk"), event("-proj"), event("ects "), event("are fine"), other];
    const { stream, pieces } = passed(plain);
    expect(stream).toBe(plain.join(""));
    // `sk-proj` waits for what follows; nothing else does.
    expect(pieces).toEqual([plain[0], plain[1], "", `${plain[2]}${plain[3]}`, plain[4], other, ""]);
    expect(passed([event(KEY.slice(0, 8)), other]).stream).toBe(event(KEY.slice(0, 8)) + other);
  });

  it("is blanked if the stream ends, or goes on elsewhere, before it is whole", () => {
    expect(textOf(passed([event("key: "), event(KEY.slice(0, 20)), other]).stream)).toBe(`key: ${BLANK}`);
    const open = event(KEY.slice(0, 20), 1);
    const others = Array.from({ length: 100 }, () => event("word ", 0));
    const { stream } = passed([open, ...others, event(KEY.slice(20), 1), other]);
    for (const part of [KEY.slice(4, 20), KEY.slice(20)]) expect(stream).not.toContain(part);
  });
});

describe("a stream of events", () => {
  const { event, textOf } = FAMILIES["chat"] ?? { event: () => "", textOf: () => "" };

  it("is one write where nothing is held, whatever chunks it comes in", () => {
    const whole = [event("one"), event("two"), event("three")].join("");
    expect(passed([whole]).pieces).toEqual([whole, ""]);
    const bytes = Array.from({ length: whole.length }, (_, at) => whole.slice(at, at + 1));
    expect(passed(bytes).stream).toBe(whole);
  });

  it("is searched alike whether its events come one by one, several at a time or byte by byte, for secrets of any form", () => {
    const secrets = [KEY, "+/(x\\y)[z]*.{8}|^$", "ab", "ss-0123456789", "q"];
    const fragment = fc.oneof(
      fc
        .tuple(fc.constantFrom(...secrets), fc.nat({ max: 30 }), fc.nat({ max: 30 }))
        .map(([secret, a, b]) => secret.slice(Math.min(a, b) % secret.length, Math.max(a, b))),
      fc.constantFrom("word", " es", "\n", '"index"', "", 'a "quote"', "\\", "é", "x sk-", "+/(", "s"),
    );
    const word = fc.array(fragment, { maxLength: 3 }).map((parts) => parts.join(""));
    const others = fc.constantFrom(": still here\n\n", "data: [DONE]\n\n", "\n\n", "event: ping\ndata: {}\n\n");
    const written = fc.oneof(
      { weight: 6, arbitrary: fc.tuple(word, fc.nat({ max: 1 })).map(([text, index]) => event(text, index)) },
      { weight: 1, arbitrary: others },
    );
    const searched = fc.constantFrom([KEY], secrets, secrets.slice(1, 3), ["q"], ["ss-0123456789", KEY]);
    fc.assert(
      fc.property(
        fc.array(written, { maxLength: 12 }),
        searched,
        fc.integer({ min: 1, max: 4 }),
        (events, own, size) => {
          const { stream } = passed(events, own);
          const groups = Array.from({ length: Math.ceil(events.length / size) }, (_, at) =>
            events.slice(at * size, (at + 1) * size).join(""),
          );
          expect(passed(groups, own).stream).toBe(stream);
          const bytes = Array.from(new TextEncoder().encode(events.join("")), (byte) => new Uint8Array([byte]));
          const split = new SplitSecrets(own, { blank: BLANK, look: lookForSecret });
          const sent = [...bytes.flatMap((byte) => split.feed([byte])), ...split.end()];
          expect(Buffer.concat(sent).toString()).toBe(stream);
        },
      ),
      { numRuns: 1_000 },
    );
  });

  it("is searched for each secret of its upstream, with escapes too", () => {
    const other = "tok-9876543210fedcba";
    const events = [event(KEY.slice(0, 8)), event(KEY.slice(8)), event(other.slice(0, 8)), event(other.slice(8))];
    expect(textOf(passed(events, [KEY, other]).stream)).toBe(BLANK + BLANK);
    const escaped = events.map((each) => each.replaceAll("k-", "\\u006b-"));
    expect(textOf(passed(escaped, [KEY, other]).stream)).toBe(BLANK + BLANK);
  });

  it("waits for a long key that comes in single characters, between other answers", () => {
    const long = `sk-proj-${"Zq7x0123456789abcdef".repeat(8)}`;
    const events = [...long].flatMap((character) => [event(character, 0), event("word ", 1)]);
    const { stream } = passed([...events, event(" so.", 0)], [long]);
    const texts = dataOf(stream).flatMap((each) => {
      const [choice] = (each as { choices: { index: number; delta: { content: string } }[] }).choices;
      return choice?.index === 0 ? [choice.delta.content] : [];
    });
    expect(texts.join("")).toBe(`${long.slice(0, 3)}${BLANK} so.`);
  });

  it("blanks the bytes of tokens, too, where a key is in log probabilities", () => {
    const token = (text: string) =>
      `data: ${JSON.stringify({ choices: [{ index: 0, delta: {}, logprobs: { content: [{ token: text, bytes: [...new TextEncoder().encode(text)] }] } }] })}\n\n`;
    const { stream } = passed([token(KEY.slice(0, 9)), token(KEY.slice(9)), "data: [DONE]\n\n"]);
    expect(stream).toContain('"token":"[redacted]","bytes":null');
    expect(stream).toContain('"token":"","bytes":null');
  });

  it("goes on when a field never does: no more than 64 events wait", () => {
    const open = event(KEY.slice(0, 20), 1);
    const rest = Array.from({ length: 100 }, () => event("word ", 0));
    const { pieces } = passed([open, ...rest]);
    expect(pieces.findIndex((piece) => piece !== "")).toBe(64);
  });
});

describe("a word that ends in the first letters of a key", () => {
  const choice = (content: string, index: number) =>
    `data: {"choices":[{"delta":${JSON.stringify({ content })},"index":${index}}]}\n\n`;
  const numbered = (delta: string, number: number) =>
    `event: response.output_text.delta\ndata: ${JSON.stringify({ type: "response.output_text.delta", sequence_number: number, item_id: "i", output_index: 0, delta })}\n\n`;
  const { event, textOf } = FAMILIES["chat"] ?? { event: () => "", textOf: () => "" };

  it("is not read unless the next event goes on with them", () => {
    let looks = 0;
    const look: typeof lookForSecret = (...asked) => {
      looks += 1;
      return lookForSecret(...asked);
    };
    const split = new SplitSecrets([KEY], { blank: BLANK, look });
    const feed = (text: string) => split.feed([new TextEncoder().encode(text)]);
    for (const word of ["words", " and glass", " es", "cents, s", "o."]) feed(event(word));
    for (const [at, word] of ["words", " is", " sks", " ok"].entries()) feed(numbered(word, at + 8));
    expect(looks).toBe(0);
    feed(event("s"));
    feed(event("k"));
    expect(looks).toBeGreaterThan(0);
  });

  it("is followed past events without text, of other answers and of other numbers", () => {
    for (const first of [1, 2, 3]) {
      const [begin, rest] = [`x${KEY.slice(0, first)}`, KEY.slice(first)];
      const streams = [
        [event(begin), event(""), event(rest)],
        [event(begin), ": still here\n\n", event(rest)],
        [event(begin, 0), event("word", 1), event(rest, 0)],
        [choice(begin, 0), choice("word", 1), choice(rest, 0)],
        [choice(begin, 1), choice("words", 0), choice(rest, 1)],
        [event(begin), FAMILIES["messages"]?.event("word") ?? "", event(rest)],
      ];
      for (const stream of streams) {
        const seen = passed(stream).stream;
        expect(seen).not.toContain(rest);
        expect(seen).toContain(BLANK);
      }
      for (const from of [8, 9, 98])
        expect(passed([numbered(begin, from), numbered(rest, from + 1)]).stream).not.toContain(rest);
    }
  });

  it("begins another key than the one that it seemed to begin", () => {
    const secret = "ssk-Zq7x0123456789abcdef";
    const words = ["miss", secret.slice(2)];
    expect(
      textOf(
        passed(
          words.map((word) => event(word)),
          [secret],
        ).stream,
      ),
    ).toBe(`miss${BLANK}`);
    const doubled = ["mis", secret.slice(1)];
    expect(
      textOf(
        passed(
          doubled.map((word) => event(word)),
          [secret],
        ).stream,
      ),
    ).toBe(`mis${BLANK}`);
  });

  it("is a key only in its own field", () => {
    const thought = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { reasoning: KEY.slice(1) } }] })}\n\n`;
    const events = [event("words"), thought, event("end")];
    expect(passed(events).stream).toBe(events.join(""));
  });
});

const ARGUMENTS: Record<string, (text: string) => string> = {
  "a chat": (text) =>
    `data: ${JSON.stringify({ choices: [{ index: 0, delta: { tool_calls: [{ index: 0, function: { arguments: text } }] } }] })}\n\n`,
  "a response": (delta) =>
    `event: response.function_call_arguments.delta\ndata: ${JSON.stringify({ type: "response.function_call_arguments.delta", item_id: "f", output_index: 0, delta })}\n\n`,
  "a message": (partial_json) =>
    `event: content_block_delta\ndata: ${JSON.stringify({ type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json } })}\n\n`,
  "reasoning of a chat": (reasoning_content) =>
    `data: ${JSON.stringify({ choices: [{ index: 0, delta: { reasoning_content } }] })}\n\n`,
  "thinking of a message": (thinking) =>
    `event: content_block_delta\ndata: ${JSON.stringify({ type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking } })}\n\n`,
};
const PATHS: Record<string, string> = {
  "a chat": "arguments",
  "a response": "delta",
  "a message": "partial_json",
  "reasoning of a chat": "reasoning_content",
  "thinking of a message": "thinking",
};

/** The strings of members of that name in a stream, joined. */
function stringsOf(stream: string, name: string): string {
  const texts: string[] = [];
  for (const data of dataOf(stream))
    JSON.stringify(data, (key, value: unknown) => {
      if (key === name && typeof value === "string") texts.push(value);
      return value;
    });
  return texts.join("");
}

const ESCAPED_FORMS: Record<string, (key: string) => string> = {
  "in plain": (key) => key,
  "with its slashes escaped": (key) => key.replaceAll("/", "\\/"),
  "with each character escaped": (key) =>
    Array.from(key, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`).join(""),
};

describe.each(Object.keys(ARGUMENTS))("a key in the arguments and thoughts of %s", (family) => {
  const event = ARGUMENTS[family] ?? (() => "");
  const secret = "sk-proj-Zq7x/0123456789+abc";

  it.each(Object.entries(ESCAPED_FORMS))("is blanked %s, wherever it is cut in two or into characters", (_, form) => {
    const written = form(secret);
    const around = [event('{"key":"'), event('"}')] as const;
    for (let at = 1; at < written.length; at++) {
      const { stream } = passed(
        [around[0], event(written.slice(0, at)), event(written.slice(at)), around[1]],
        [secret],
      );
      const text = stringsOf(stream, PATHS[family] ?? "");
      // Of the key or of its escapes, what left before there were four characters.
      expect(text.replace(/^\{"key":".{0,3}\[redacted\]"\}$/, "blanked")).toBe("blanked");
    }
    const { stream } = passed([around[0], ...Array.from(written, event), around[1]], [secret]);
    expect(stringsOf(stream, PATHS[family] ?? "")).toMatch(/^\{"key":".{0,3}\[redacted\]"\}$/);
  });
});
