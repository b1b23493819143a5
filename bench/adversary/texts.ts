/** Texts as hostile clients choose them: prose that tokenizers like, and all that they do not. */
import type { Random } from "./random.ts";
import { WORDS } from "./tokenizers.ts";

/** What a run's prompts are made of: `turning` begins with prose and turns dense once the gateway has learned prose. */
export type Mood = "prose" | "dense" | "mixed";

const DENSE = ["letters", "digits", "base64", "symbols", "han", "emoji", "upper", "hex", "blank", "thai"] as const;
type Dense = (typeof DENSE)[number];

const ALPHABETS: Record<Dense, string> = {
  letters: "qzxkvjwpbq",
  digits: "0123456789",
  base64: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
  symbols: "{}[]()<>!?%&$#@;:,.~^|*=-_'`",
  han: "水光玻璃鏡色面紙體反射折觀察問答",
  emoji: "😀🧪🔭🪞🌈💧",
  upper: "QWERTYUIOPASDFGHJKLZXCVBNM",
  hex: "0123456789abcdef",
  blank: " \n\t",
  thai: "กขคงจฉชซฌญฎฏฐ",
};

/** A text of about so many characters. */
export function textIn(mood: Mood, chars: number, random: Random): string {
  const isProse = mood === "prose" || (mood === "mixed" && random.chance(0.5));
  if (isProse) return prose(chars, random);
  // Something dense that begins like prose, as a look at the first bytes would have it.
  const lead = random.chance(0.3) ? prose(Math.min(200, chars >> 2), random) : "";
  return lead + dense(random.pick(DENSE), Math.max(1, chars - lead.length), random);
}

function prose(chars: number, random: Random): string {
  let text = "";
  while (text.length < chars) text += `${random.pick(WORDS)}${random.chance(0.1) ? ". " : " "}`;
  return text.slice(0, Math.max(1, chars));
}

function dense(kind: Dense, chars: number, random: Random): string {
  const alphabet = [...ALPHABETS[kind]];
  let text = "";
  for (let at = 0; at < chars; at += 1) text += random.pick(alphabet);
  // Letters in words of random length look like a language.
  return kind === "letters" ? text.replaceAll(/(.{7})/g, "$1 ") : text;
}
