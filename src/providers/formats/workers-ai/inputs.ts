/** A request in OpenAI's form as the inputs of a model at the binding of Workers AI. */
import { isRecord } from "../../../text/json/record.ts";

/** What a model is given, and what of the request its answer depends on; or why the binding cannot take it. */
export type ModelInputs =
  | { ok: true; model: string; inputs: Record<string, unknown>; base64: boolean; cap: number | null }
  | { ok: false; message: string };

type Inputs = Extract<ModelInputs, { ok: true }>;

/** The inputs of a chat. Fields go on as they are, but for two that the binding takes in another form. */
export function chatInputs({ model, ...request }: Record<string, unknown>): ModelInputs {
  const inputs: Record<string, unknown> = { ...request };
  // The binding refuses null, which OpenAI's clients send beside calls of tools.
  if (Array.isArray(inputs["messages"])) inputs["messages"] = inputs["messages"].map(withContent);
  const format = inputs["response_format"];
  const wrapped = isRecord(format) ? format["json_schema"] : undefined;
  // JSON mode takes the schema itself, without OpenAI's name and `strict` around it.
  if (isRecord(format) && isRecord(wrapped) && isRecord(wrapped["schema"])) {
    inputs["response_format"] = { ...format, json_schema: wrapped["schema"] };
  }
  const cap = inputs["max_tokens"];
  return { ...modelOf(model), inputs, base64: false, cap: typeof cap === "number" ? cap : null };
}

/** The inputs of embeddings: only texts, and vectors as long as the model makes them. */
export function embeddingInputs(request: Record<string, unknown>): ModelInputs {
  const { model, input, encoding_format: encoding, dimensions } = request;
  const texts: unknown[] = Array.isArray(input) ? input : [input];
  if (!texts.every((text) => typeof text === "string")) {
    return { ok: false, message: "input: the Workers AI binding embeds a text or a list of texts, and no tokens" };
  }
  if (dimensions !== undefined && dimensions !== null) {
    return { ok: false, message: "dimensions: the Workers AI binding does not shorten vectors" };
  }
  return { ...modelOf(model), inputs: { text: texts }, base64: encoding === "base64", cap: null };
}

function modelOf(model: unknown): Pick<Inputs, "ok" | "model"> {
  return { ok: true, model: typeof model === "string" ? model : "" };
}

function withContent(message: unknown): unknown {
  return isRecord(message) && message["content"] === null ? { ...message, content: "" } : message;
}
