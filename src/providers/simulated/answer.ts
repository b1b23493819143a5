/** What a simulated model answers: a text, JSON that follows a schema, or a call of a tool. */
import { isRecord } from "../../text/json/record.ts";
import { fraction, promptHash } from "./hash.ts";
import type { SimulatedModel, Structure } from "./model.ts";
import type { Input, StructuredInput, ToolCall } from "./protocol.ts";
import { writeJson } from "./schema/write.ts";
import { simulatedText } from "./text.ts";
import { nextCall } from "./tools.ts";

/** A text for each prompt, before its cap; with `call` they are the call's arguments as JSON. */
export type Answer = { texts: readonly string[]; call: ToolCall | null };

/** The answer, or the message to refuse the request with: it demands a schema that cannot be simulated. */
export type Answered = { ok: true; answer: Answer } | { ok: false; message: string };

/** `attempt` is which attempt of its call this is, from 1. */
export function answerOf({ name, structure }: SimulatedModel, input: Input, attempt: number): Answered {
  const { prompts, structured } = input;
  if (input.choices === 0) return answered([]);
  const texts = prompts.map((prompt) => simulatedText(name, prompt));
  const [text = ""] = texts;
  if (structured === null) return answered(texts);

  const { format, tools, toolRounds } = structured;
  // The strings of sim/json are of the prompt, for JSON in JSON would help nobody.
  const source = { text: name === "json" ? (prompts[0] ?? "") : text, items: structure.items };
  const tool = nextCall(tools, toolRounds, structure.calls);
  if (tool !== null) {
    const written = writeJson(tool.parameters, source);
    return written.ok ? answered([written.json], { name: tool.name, round: toolRounds }) : written;
  }
  if (format.kind === "text") return answered(texts);
  if (isInvalid(structure, text, earlierAnswers(structured, attempt)))
    return answered([invalidJson(text, format.schema)]);
  if (format.schema === null) return answered(prompts.map((prompt) => simulatedText("json", prompt)));
  const written = writeJson(format.schema, source);
  return written.ok ? answered([written.json]) : written;
}

function answered(texts: readonly string[], call: ToolCall | null = null): Answered {
  return { ok: true, answer: { texts, call } };
}

/** A repair is a further attempt, or a further turn of the conversation: either counts. */
function earlierAnswers({ answers }: StructuredInput, attempt: number): number {
  return Math.max(answers, attempt - 1);
}

function isInvalid({ invalidRate, invalidTimes }: Structure, text: string, earlier: number): boolean {
  return earlier < invalidTimes && fraction(`invalid:${text}`) < invalidRate;
}

/** No JSON, JSON that breaks off, or JSON of another type: what weak models give. None of it follows the schema. */
function invalidJson(text: string, schema: unknown): string {
  const kind = promptHash(`kind:${text}`) % 3;
  if (kind === 0 && isRecord(schema) && schema["type"] === "object") return "[]";
  return kind === 1 ? `{"answer": ${JSON.stringify(text)}` : `I cannot answer this in JSON: ${text}`;
}
