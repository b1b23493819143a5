/** What the upstream answers in each API family, whole or as events, with the usage that it bills. */
import type { Bill, Family } from "./bill.ts";

export type Answered = {
  family: Family;
  bill: Bill;
  model: string;
  /** USD that the upstream names, null = it names none. */
  cost: number | null;
  hidesUsage: boolean;
  /** Makes answers differ in length. */
  echo: number;
};

const PIECES = ["An ", "answer ", "of ", "some ", "words."];

export function answerText(answered: Answered): string {
  return JSON.stringify(wholeOf(answered, PIECES.join("")));
}

function wholeOf(answered: Answered, text: string): Record<string, unknown> {
  const { family, model, bill } = answered;
  const tier = bill.tier === null ? {} : { service_tier: bill.tier };
  const usage = answered.hidesUsage ? {} : { usage: usageOf(answered) };
  const finish = stopOf(answered);
  switch (family) {
    case "chat":
      return {
        ...{ id: "chatcmpl-1", object: "chat.completion", created: 1, model, ...tier },
        choices: [{ index: 0, message: { role: "assistant", content: text }, finish_reason: finish, logprobs: null }],
        ...usage,
      };
    case "completions":
      return {
        ...{ id: "cmpl-1", object: "text_completion", created: 1, model, ...tier },
        choices: [{ index: 0, text, finish_reason: finish, logprobs: null }],
        ...usage,
      };
    case "responses":
      return {
        ...{ id: "resp_1", object: "response", created_at: 1, status: "completed", model, ...tier },
        output: [
          {
            ...{ type: "message", id: "msg_1", status: "completed", role: "assistant" },
            content: [{ type: "output_text", text, annotations: [] }],
          },
        ],
        ...usage,
      };
    case "messages":
      return {
        ...{ id: "msg_1", type: "message", role: "assistant", model, stop_sequence: null },
        content: [{ type: "text", text }],
        stop_reason: finish === "length" ? "max_tokens" : "end_turn",
        ...usage,
      };
    case "embeddings":
      return {
        ...{ object: "list", model },
        data: [{ object: "embedding", index: 0, embedding: [0.25, 0.5] }],
        ...usage,
      };
  }
}

function stopOf({ bill }: Answered): "length" | "stop" {
  return bill.cap !== null && bill.completionTokens >= bill.cap ? "length" : "stop";
}

function usageOf({ family, bill, cost }: Answered): Record<string, unknown> {
  const named = cost === null ? {} : { cost };
  const total = bill.promptTokens + bill.completionTokens;
  if (family === "embeddings") return { prompt_tokens: bill.promptTokens, total_tokens: bill.promptTokens, ...named };
  if (family === "messages") return anthropicUsage(bill);
  const details = {
    cached_tokens: bill.cachedTokens,
    ...(bill.write5mTokens > 0 ? { cache_write_tokens: bill.write5mTokens } : {}),
  };
  if (family === "responses") {
    return {
      ...{ input_tokens: bill.promptTokens, input_tokens_details: details, output_tokens: bill.completionTokens },
      ...{ output_tokens_details: { reasoning_tokens: 0 }, total_tokens: total, ...named },
    };
  }
  return {
    ...{ prompt_tokens: bill.promptTokens, completion_tokens: bill.completionTokens, total_tokens: total },
    ...{ prompt_tokens_details: details, ...named },
  };
}

function anthropicUsage(bill: Bill): Record<string, unknown> {
  const written = bill.write5mTokens + bill.write1hTokens;
  return {
    input_tokens: bill.promptTokens - bill.cachedTokens - written,
    cache_read_input_tokens: bill.cachedTokens,
    cache_creation_input_tokens: written,
    cache_creation: {
      ephemeral_5m_input_tokens: bill.write5mTokens,
      ephemeral_1h_input_tokens: bill.write1hTokens,
    },
    output_tokens: bill.completionTokens,
    service_tier: bill.tier ?? "standard",
  };
}

/** The events of a streamed answer, in their order. */
export function streamText(answered: Answered): string[] {
  const { family } = answered;
  if (family === "responses") return responseEvents(answered);
  if (family === "messages") return messageEvents(answered);
  return chunkEvents(answered);
}

const data = (event: unknown): string => `data: ${JSON.stringify(event)}\n\n`;
const named = (type: string, fields: Record<string, unknown>): string => `event: ${type}\n${data({ type, ...fields })}`;

function chunkEvents(answered: Answered): string[] {
  const { family, model, bill, hidesUsage } = answered;
  const isChat = family === "chat";
  const head = { id: "c1", object: isChat ? "chat.completion.chunk" : "text_completion", created: 1, model };
  const tier = bill.tier === null ? {} : { service_tier: bill.tier };
  const piece = (text: string, finish: string | null) => {
    const part = isChat ? { delta: finish === null ? { content: text } : {} } : { text };
    return data({ ...head, ...tier, choices: [{ index: 0, ...part, finish_reason: finish }] });
  };
  const events = [...PIECES.map((text) => piece(text, null)), piece("", stopOf(answered))];
  if (bill.tellsUsage && !hidesUsage) events.push(data({ ...head, ...tier, choices: [], usage: usageOf(answered) }));
  return [...events, "data: [DONE]\n\n"];
}

function responseEvents(answered: Answered): string[] {
  const whole = wholeOf(answered, PIECES.join(""));
  const begun = { ...whole, status: "in_progress", output: [], usage: null };
  return [
    named("response.created", { sequence_number: 0, response: begun }),
    ...PIECES.map((delta, at) =>
      named("response.output_text.delta", {
        ...{ sequence_number: at + 1, item_id: "msg_1", output_index: 0, content_index: 0, delta },
      }),
    ),
    named("response.completed", { sequence_number: PIECES.length + 1, response: whole }),
  ];
}

function messageEvents(answered: Answered): string[] {
  const { hidesUsage, bill } = answered;
  const { usage: _, content: __, ...message } = wholeOf(answered, "");
  const usage = hidesUsage ? {} : { usage: { ...anthropicUsage(bill), output_tokens: 1 } };
  const ended = hidesUsage ? {} : { usage: { output_tokens: bill.completionTokens } };
  return [
    named("message_start", { message: { ...message, content: [], stop_reason: null, ...usage } }),
    named("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
    ...PIECES.map((text) => named("content_block_delta", { index: 0, delta: { type: "text_delta", text } })),
    named("content_block_stop", { index: 0 }),
    named("message_delta", { delta: { stop_reason: message["stop_reason"], stop_sequence: null }, ...ended }),
    named("message_stop", {}),
  ];
}
