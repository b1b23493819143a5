/**
 * Writes what the JavaScript SDKs in node_modules really send, one JSON line per request, to the files of this folder:
 *
 *   node test/support/honest-bodies/capture.ts
 *
 * A server on loopback records each body and answers an error, which ends the call. Run it again after an SDK's update.
 */
import Anthropic from "@anthropic-ai/sdk";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { HumanMessage, SystemMessage, AIMessage, ToolMessage } from "@langchain/core/messages";
import { tool as langchainTool } from "@langchain/core/tools";
import { ChatOpenAI, OpenAI as LangChainCompletions, OpenAIEmbeddings } from "@langchain/openai";
import { embed, embedMany, generateText, jsonSchema, Output, stepCountIs, streamText, tool } from "ai";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import OpenAI from "openai";
import { zodResponseFormat, zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";

const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

const FAMILIES: Record<string, string> = {
  "/v1/chat/completions": "chat",
  "/v1/completions": "completions",
  "/v1/responses": "responses",
  "/v1/messages": "messages",
  "/v1/embeddings": "embeddings",
};

const recorded: { family: string; body: unknown }[] = [];
const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.once("end", () => {
    const family = FAMILIES[(request.url ?? "").split("?", 1)[0] ?? ""];
    if (family !== undefined) recorded.push({ family, body: JSON.parse(Buffer.concat(chunks).toString("utf8")) });
    response.writeHead(400, { "content-type": "application/json", "x-should-retry": "false" });
    response.end('{"error":{"message":"recorded","type":"invalid_request_error","param":null,"code":null}}');
  });
});
await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
const address = server.address();
const origin = `http://127.0.0.1:${address !== null && typeof address === "object" ? address.port : 0}`;

/** One request of an SDK, by the name under which the test lists it. */
type Case = readonly [name: string, call: () => unknown];

async function capture(file: string, cases: readonly Case[]): Promise<void> {
  const lines: string[] = [];
  for (const [name, call] of cases) {
    const before = recorded.length;
    try {
      await call();
    } catch {
      // The recorder answers nothing but errors.
    }
    const [first] = recorded.slice(before);
    if (first === undefined) throw new Error(`${file}: "${name}" sent nothing`);
    lines.push(JSON.stringify({ name, ...first }));
  }
  writeFileSync(new URL(`${file}.jsonl`, import.meta.url), `${lines.join("\n")}\n`);
  console.log(`${file}: ${lines.length}`);
}

const weather = {
  type: "object" as const,
  properties: { city: { type: "string", description: "A city" }, unit: { type: "string", enum: ["C", "F"] } },
  required: ["city", "unit"],
  additionalProperties: false,
};
const Verdict = z.object({ label: z.enum(["spam", "ham"]), reasons: z.array(z.string()) });
const messages = [
  { role: "system" as const, content: "Answer in one sentence." },
  { role: "user" as const, content: "Why do leaves turn red?" },
];

const openai = new OpenAI({ baseURL: `${origin}/v1`, apiKey: "none", maxRetries: 0 });
const chat = openai.chat.completions;
const functionTool = {
  type: "function" as const,
  function: { name: "get_weather", description: "Weather of a city", parameters: weather, strict: true },
};

await capture("openai-js", [
  ["chat", () => chat.create({ model: "gpt-4o-mini", messages })],
  ["chat, stream", () => chat.create({ model: "gpt-4o-mini", messages, stream: true })],
  [
    "chat, stream with usage",
    () => chat.create({ model: "gpt-5-mini", messages, stream: true, stream_options: { include_usage: true } }),
  ],
  [
    "chat, sampling",
    () =>
      chat.create({
        model: "gpt-4.1",
        messages,
        temperature: 0.2,
        top_p: 0.9,
        presence_penalty: 0.1,
        frequency_penalty: 0.3,
        seed: 7,
        stop: ["\n\n", "END"],
        logit_bias: { "1734": -100 },
        max_tokens: 200,
        user: "reader-12",
      }),
  ],
  ["chat, log probabilities", () => chat.create({ model: "gpt-4o", messages, logprobs: true, top_logprobs: 5 })],
  ["chat, three choices", () => chat.create({ model: "gpt-4o", messages, n: 3, max_tokens: 60 })],
  [
    "chat, reasoning",
    () =>
      chat.create({
        model: "o4-mini",
        messages: [{ role: "developer", content: "Think first." }, ...messages.slice(1)],
        reasoning_effort: "low",
        max_completion_tokens: 900,
      }),
  ],
  [
    "chat, verbosity and cache key",
    () =>
      chat.create({
        model: "gpt-5.1",
        messages,
        reasoning_effort: "none",
        verbosity: "low",
        prompt_cache_key: "leaves",
        safety_identifier: "hash-1",
        service_tier: "auto",
      }),
  ],
  ["chat, json mode", () => chat.create({ model: "gpt-4o", messages, response_format: { type: "json_object" } })],
  [
    "chat, parse with zod",
    () => chat.parse({ model: "gpt-4o", messages, response_format: zodResponseFormat(Verdict, "verdict") }),
  ],
  [
    "chat, tools",
    () =>
      chat.create({ model: "gpt-4o", messages, tools: [functionTool], tool_choice: "auto", parallel_tool_calls: true }),
  ],
  [
    "chat, forced tool",
    () =>
      chat.create({
        model: "gpt-4o",
        messages,
        tools: [functionTool],
        tool_choice: { type: "function", function: { name: "get_weather" } },
      }),
  ],
  [
    "chat, custom tool",
    () =>
      chat.create({
        model: "gpt-5",
        messages,
        tools: [{ type: "custom", custom: { name: "run_sql", description: "Runs a query", format: { type: "text" } } }],
      }),
  ],
  [
    "chat, a tool's answer",
    () =>
      chat.create({
        model: "gpt-4o",
        messages: [
          ...messages,
          {
            role: "assistant",
            content: null,
            tool_calls: [
              {
                id: "call_1",
                type: "function",
                function: { name: "get_weather", arguments: '{"city":"Oslo","unit":"C"}' },
              },
            ],
          },
          { role: "tool", tool_call_id: "call_1", content: '{"degrees":4}' },
        ],
        tools: [functionTool],
      }),
  ],
  [
    "chat, legacy functions",
    () =>
      chat.create({
        model: "gpt-3.5-turbo",
        messages,
        functions: [{ name: "get_weather", description: "Weather", parameters: weather }],
        function_call: "auto",
      }),
  ],
  [
    "chat, image by data",
    () =>
      chat.create({
        model: "gpt-4o",
        messages: [
          {
            role: "user",
            content: [
              { type: "text", text: "What is this?" },
              { type: "image_url", image_url: { url: `data:image/png;base64,${PIXEL}`, detail: "low" } },
            ],
          },
        ],
      }),
  ],
  [
    "chat, image by address",
    () =>
      chat.create({
        model: "gpt-4o",
        messages: [
          { role: "user", content: [{ type: "image_url", image_url: { url: "https://pictures.example/leaf.png" } }] },
        ],
        max_tokens: 300,
      }),
  ],
  [
    "chat, file by data",
    () =>
      chat.create({
        model: "gpt-4o",
        messages: [
          {
            role: "user",
            content: [
              { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,JVBERi0xLjQK" } },
              { type: "text", text: "Summarise it." },
            ],
          },
        ],
      }),
  ],
  [
    "chat, sound",
    () =>
      chat.create({
        model: "gpt-4o-audio-preview",
        modalities: ["text"],
        messages: [
          {
            role: "user",
            content: [
              { type: "text", text: "Write down what you hear." },
              { type: "input_audio", input_audio: { data: "UklGRiQAAABXQVZF", format: "wav" } },
            ],
          },
        ],
      }),
  ],
  [
    "chat, stored with metadata",
    () => chat.create({ model: "gpt-4.1-mini", messages, store: true, metadata: { chapter: "3", job: "summary" } }),
  ],
  ["chat, flex tier", () => chat.create({ model: "o4-mini", messages, service_tier: "flex" })],
  [
    "chat, named speakers and refusal",
    () =>
      chat.create({
        model: "gpt-4o",
        messages: [
          { role: "user", name: "ada", content: "Say it." },
          { role: "assistant", content: [{ type: "text", text: "No." }], refusal: null },
          { role: "user", name: "bob", content: [{ type: "text", text: "Please." }] },
        ],
      }),
  ],
  [
    "chat, stream helper",
    () => chat.stream({ model: "gpt-4o-mini", messages, max_completion_tokens: 128 }).finalChatCompletion(),
  ],
  [
    "chat, tool runner",
    () =>
      chat
        .runTools({
          model: "gpt-4o-mini",
          messages,
          tools: [
            {
              type: "function",
              function: {
                name: "now",
                description: "The time",
                parameters: { type: "object", properties: {} },
                function: () => "12:00",
                parse: JSON.parse,
              },
            },
          ],
        })
        .finalContent(),
  ],
  ["responses, text", () => openai.responses.create({ model: "gpt-5", input: "Why is the sky blue?" })],
  [
    "responses, instructions",
    () =>
      openai.responses.create({
        model: "gpt-5",
        instructions: "Be brief.",
        input: "Why?",
        max_output_tokens: 400,
        store: false,
      }),
  ],
  [
    "responses, stream",
    () =>
      openai.responses.create({
        model: "gpt-5-mini",
        input: "Count to ten.",
        stream: true,
        reasoning: { effort: "low", summary: "auto" },
      }),
  ],
  [
    "responses, messages",
    () =>
      openai.responses.create({
        model: "gpt-4.1",
        input: [
          { role: "developer", content: "Translate to French." },
          { role: "user", content: [{ type: "input_text", text: "Good morning" }] },
        ],
        temperature: 0,
        top_p: 1,
        truncation: "disabled",
      }),
  ],
  [
    "responses, image",
    () =>
      openai.responses.create({
        model: "gpt-4.1",
        input: [
          {
            role: "user",
            content: [
              { type: "input_text", text: "Describe" },
              { type: "input_image", image_url: `data:image/png;base64,${PIXEL}`, detail: "auto" },
            ],
          },
        ],
      }),
  ],
  [
    "responses, file by data",
    () =>
      openai.responses.create({
        model: "gpt-4.1",
        input: [
          {
            role: "user",
            content: [
              { type: "input_file", filename: "a.pdf", file_data: "data:application/pdf;base64,JVBERi0xLjQK" },
              { type: "input_text", text: "Summarise." },
            ],
          },
        ],
      }),
  ],
  [
    "responses, parse with zod",
    () =>
      openai.responses.parse({
        model: "gpt-5",
        input: "Is this spam?",
        text: { format: zodTextFormat(Verdict, "verdict") },
      }),
  ],
  [
    "responses, function tool",
    () =>
      openai.responses.create({
        model: "gpt-5",
        input: "Weather in Oslo?",
        tools: [{ type: "function", name: "get_weather", parameters: weather, strict: true }],
        tool_choice: "auto",
        parallel_tool_calls: false,
        max_tool_calls: 2,
      }),
  ],
  [
    "responses, a function's output",
    () =>
      openai.responses.create({
        model: "gpt-5",
        input: [
          { role: "user", content: "Weather in Oslo?" },
          { type: "function_call", call_id: "call_1", name: "get_weather", arguments: '{"city":"Oslo","unit":"C"}' },
          { type: "function_call_output", call_id: "call_1", output: '{"degrees":4}' },
        ],
        include: ["reasoning.encrypted_content"],
        store: false,
      }),
  ],
  [
    "responses, reasoning given back",
    () =>
      openai.responses.create({
        model: "gpt-5",
        input: [
          { role: "user", content: "And now?" },
          {
            type: "reasoning",
            id: "rs_1",
            summary: [{ type: "summary_text", text: "Thought." }],
            encrypted_content: "gAAAAA==",
          },
          {
            type: "message",
            id: "msg_1",
            status: "completed",
            role: "assistant",
            content: [{ type: "output_text", text: "Now.", annotations: [] }],
          },
          { role: "user", content: "Go on." },
        ],
        text: { verbosity: "low" },
        prompt_cache_key: "thread-9",
        metadata: { thread: "9" },
      }),
  ],
  [
    "completions",
    () =>
      openai.completions.create({
        model: "gpt-3.5-turbo-instruct",
        prompt: "Once upon",
        max_tokens: 64,
        temperature: 0.7,
      }),
  ],
  [
    "completions, suffix and echo",
    () =>
      openai.completions.create({
        model: "gpt-3.5-turbo-instruct",
        prompt: "def f(",
        suffix: "return x",
        echo: true,
        logprobs: 2,
        max_tokens: 32,
        stop: "\n",
      }),
  ],
  [
    "completions, list of prompts",
    () => openai.completions.create({ model: "babbage-002", prompt: ["one", "two", "three"], max_tokens: 5 }),
  ],
  [
    "completions, tokens",
    () =>
      openai.completions.create({ model: "davinci-002", prompt: [9906, 11, 1917], max_tokens: 5, best_of: 2, n: 2 }),
  ],
  [
    "completions, stream",
    () =>
      openai.completions.create({
        model: "davinci-002",
        prompt: "x",
        max_tokens: 5,
        stream: true,
        stream_options: { include_usage: true },
      }),
  ],
  ["embeddings", () => openai.embeddings.create({ model: "text-embedding-3-small", input: "a leaf" })],
  [
    "embeddings, list and dimensions",
    () =>
      openai.embeddings.create({
        model: "text-embedding-3-large",
        input: ["a", "b"],
        dimensions: 256,
        encoding_format: "float",
        user: "u1",
      }),
  ],
  [
    "embeddings, tokens",
    () => openai.embeddings.create({ model: "text-embedding-ada-002", input: [[15339], [1917, 0]] }),
  ],
]);

const anthropic = new Anthropic({ baseURL: origin, apiKey: "none", maxRetries: 0 });
const MODEL = "claude-sonnet-4-5";
const said = [{ role: "user" as const, content: "Why do leaves turn red?" }];
const anthropicTool = { name: "get_weather", description: "Weather of a city", input_schema: weather };

await capture("anthropic-js", [
  ["messages", () => anthropic.messages.create({ model: MODEL, max_tokens: 512, messages: said })],
  [
    "messages, stream",
    () => anthropic.messages.create({ model: MODEL, max_tokens: 512, messages: said, stream: true }),
  ],
  [
    "messages, stream helper",
    () => anthropic.messages.stream({ model: MODEL, max_tokens: 256, messages: said }).finalMessage(),
  ],
  [
    "messages, system",
    () => anthropic.messages.create({ model: MODEL, max_tokens: 512, system: "Be brief.", messages: said }),
  ],
  [
    "messages, system with a cache mark",
    () =>
      anthropic.messages.create({
        model: MODEL,
        max_tokens: 512,
        system: [{ type: "text", text: "A long manual. ".repeat(20), cache_control: { type: "ephemeral" } }],
        messages: said,
      }),
  ],
  [
    "messages, one-hour cache",
    () =>
      anthropic.messages.create({
        model: MODEL,
        max_tokens: 512,
        system: [{ type: "text", text: "A long manual. ".repeat(20), cache_control: { type: "ephemeral", ttl: "1h" } }],
        messages: said,
      }),
  ],
  [
    "messages, cached turn and tools",
    () =>
      anthropic.messages.create({
        model: MODEL,
        max_tokens: 512,
        tools: [{ ...anthropicTool, cache_control: { type: "ephemeral" } }],
        messages: [
          {
            role: "user",
            content: [{ type: "text", text: "A book.", cache_control: { type: "ephemeral", ttl: "5m" } }],
          },
        ],
      }),
  ],
  [
    "messages, tools",
    () =>
      anthropic.messages.create({
        model: MODEL,
        max_tokens: 512,
        messages: said,
        tools: [anthropicTool],
        tool_choice: { type: "auto" },
      }),
  ],
  [
    "messages, forced tool",
    () =>
      anthropic.messages.create({
        model: MODEL,
        max_tokens: 512,
        messages: said,
        tools: [anthropicTool],
        tool_choice: { type: "tool", name: "get_weather", disable_parallel_tool_use: true },
      }),
  ],
  [
    "messages, a tool's answer",
    () =>
      anthropic.messages.create({
        model: MODEL,
        max_tokens: 512,
        tools: [anthropicTool],
        messages: [
          ...said,
          {
            role: "assistant",
            content: [
              { type: "text", text: "I look." },
              { type: "tool_use", id: "toolu_1", name: "get_weather", input: { city: "Oslo", unit: "C" } },
            ],
          },
          {
            role: "user",
            content: [
              {
                type: "tool_result",
                tool_use_id: "toolu_1",
                content: [{ type: "text", text: "4 degrees" }],
                is_error: false,
              },
            ],
          },
        ],
      }),
  ],
  [
    "messages, thinking",
    () =>
      anthropic.messages.create({
        model: MODEL,
        max_tokens: 4000,
        thinking: { type: "enabled", budget_tokens: 2000 },
        messages: said,
      }),
  ],
  [
    "messages, thinking given back",
    () =>
      anthropic.messages.create({
        model: MODEL,
        max_tokens: 4000,
        thinking: { type: "enabled", budget_tokens: 2000 },
        messages: [
          ...said,
          {
            role: "assistant",
            content: [
              { type: "thinking", thinking: "Pigments.", signature: "c2ln" },
              { type: "redacted_thinking", data: "ZGF0YQ==" },
              { type: "text", text: "Anthocyanins." },
            ],
          },
          { role: "user", content: "And yellow?" },
        ],
      }),
  ],
  [
    "messages, image",
    () =>
      anthropic.messages.create({
        model: MODEL,
        max_tokens: 512,
        messages: [
          {
            role: "user",
            content: [
              { type: "image", source: { type: "base64", media_type: "image/png", data: PIXEL } },
              { type: "text", text: "What is it?" },
            ],
          },
        ],
      }),
  ],
  [
    "messages, image by address",
    () =>
      anthropic.messages.create({
        model: MODEL,
        max_tokens: 512,
        messages: [
          {
            role: "user",
            content: [{ type: "image", source: { type: "url", url: "https://pictures.example/leaf.png" } }],
          },
        ],
      }),
  ],
  [
    "messages, PDF",
    () =>
      anthropic.messages.create({
        model: MODEL,
        max_tokens: 512,
        messages: [
          {
            role: "user",
            content: [
              {
                type: "document",
                source: { type: "base64", media_type: "application/pdf", data: "JVBERi0xLjQK" },
                title: "A",
                citations: { enabled: true },
              },
              { type: "text", text: "Summarise." },
            ],
          },
        ],
      }),
  ],
  [
    "messages, text document",
    () =>
      anthropic.messages.create({
        model: MODEL,
        max_tokens: 512,
        messages: [
          {
            role: "user",
            content: [
              {
                type: "document",
                source: { type: "text", media_type: "text/plain", data: "Leaves fall." },
                context: "A note",
              },
              { type: "text", text: "What falls?" },
            ],
          },
        ],
      }),
  ],
  [
    "messages, document of content",
    () =>
      anthropic.messages.create({
        model: MODEL,
        max_tokens: 512,
        messages: [
          {
            role: "user",
            content: [
              { type: "document", source: { type: "content", content: [{ type: "text", text: "Leaves fall." }] } },
              { type: "text", text: "What falls?" },
            ],
          },
        ],
      }),
  ],
  [
    "messages, search result",
    () =>
      anthropic.messages.create({
        model: MODEL,
        max_tokens: 512,
        messages: [
          {
            role: "user",
            content: [
              {
                type: "search_result",
                source: "https://notes.example/1",
                title: "Notes",
                content: [{ type: "text", text: "Leaves fall." }],
                citations: { enabled: true },
              },
              { type: "text", text: "What falls?" },
            ],
          },
        ],
      }),
  ],
  [
    "messages, structured output",
    () =>
      anthropic.messages.create({
        model: MODEL,
        max_tokens: 512,
        messages: said,
        output_config: {
          format: {
            type: "json_schema",
            schema: {
              type: "object",
              properties: { cause: { type: "string" } },
              required: ["cause"],
              additionalProperties: false,
            },
          },
        },
      }),
  ],
  [
    "messages, effort",
    () =>
      anthropic.messages.create({
        model: "claude-opus-4-5",
        max_tokens: 1000,
        messages: said,
        output_config: { effort: "medium" },
      }),
  ],
  [
    "messages, adaptive thinking",
    () =>
      anthropic.messages.create({
        model: "claude-opus-4-6",
        max_tokens: 4000,
        messages: said,
        thinking: { type: "adaptive" },
      }),
  ],
  [
    "messages, automatic caching",
    () =>
      anthropic.messages.create({
        model: MODEL,
        max_tokens: 100,
        messages: said,
        cache_control: { type: "ephemeral" },
      }),
  ],
  [
    "messages, standard tier",
    () => anthropic.messages.create({ model: MODEL, max_tokens: 100, messages: said, service_tier: "standard_only" }),
  ],
  [
    "messages, prefilled answer",
    () =>
      anthropic.messages.create({
        model: MODEL,
        max_tokens: 100,
        messages: [...said, { role: "assistant", content: "Because" }],
      }),
  ],
]);

const provider = createOpenAI({ baseURL: `${origin}/v1`, apiKey: "none" });
const compatible = createOpenAICompatible({ name: "up", baseURL: `${origin}/v1`, apiKey: "none", includeUsage: true });
const maxRetries = 0;
const sdkTool = tool({
  description: "Weather of a city",
  inputSchema: jsonSchema<{ city: string }>(weather),
  execute: () => "4",
});

await capture("ai-sdk", [
  [
    "responses, text",
    () => generateText({ model: provider("gpt-5-mini"), prompt: "Why is the sky blue?", maxRetries }),
  ],
  [
    "responses, system and cap",
    () =>
      generateText({
        model: provider("gpt-4.1"),
        system: "Be brief.",
        prompt: "Why?",
        maxOutputTokens: 200,
        temperature: 0,
        maxRetries,
      }),
  ],
  [
    "responses, tools",
    () =>
      generateText({
        model: provider("gpt-4.1"),
        prompt: "Weather?",
        tools: { weather: sdkTool },
        stopWhen: stepCountIs(3),
        maxRetries,
      }),
  ],
  [
    "responses, object",
    () =>
      generateText({
        model: provider("gpt-4.1"),
        prompt: "Is it spam?",
        output: Output.object({ schema: Verdict }),
        maxRetries,
      }),
  ],
  [
    "responses, stream",
    () => streamText({ model: provider("gpt-5"), prompt: "Count.", maxRetries, onError: () => undefined }).text,
  ],
  [
    "responses, provider options",
    () =>
      generateText({
        model: provider("gpt-5"),
        prompt: "Why?",
        maxRetries,
        providerOptions: {
          openai: {
            reasoningEffort: "low",
            textVerbosity: "low",
            store: false,
            user: "u1",
            parallelToolCalls: false,
            promptCacheKey: "k",
            serviceTier: "flex",
          },
        },
      }),
  ],
  [
    "chat, text",
    () => generateText({ model: provider.chat("gpt-4o-mini"), prompt: "Why is the sky blue?", maxRetries }),
  ],
  [
    "chat, settings",
    () =>
      generateText({
        model: provider.chat("gpt-4o-mini"),
        system: "Be brief.",
        prompt: "Why?",
        maxOutputTokens: 100,
        topP: 0.5,
        seed: 3,
        stopSequences: ["END"],
        presencePenalty: 0.2,
        frequencyPenalty: 0.2,
        maxRetries,
      }),
  ],
  [
    "chat, tools",
    () =>
      generateText({
        model: provider.chat("gpt-4o-mini"),
        prompt: "Weather?",
        tools: { weather: sdkTool },
        toolChoice: "required",
        maxRetries,
      }),
  ],
  [
    "chat, object",
    () =>
      generateText({
        model: provider.chat("gpt-4o-mini"),
        prompt: "Is it spam?",
        output: Output.object({ schema: Verdict }),
        maxRetries,
      }),
  ],
  [
    "chat, stream",
    () =>
      streamText({ model: provider.chat("gpt-4o-mini"), prompt: "Count.", maxRetries, onError: () => undefined }).text,
  ],
  [
    "chat, image",
    () =>
      generateText({
        model: provider.chat("gpt-4o"),
        maxRetries,
        messages: [
          {
            role: "user",
            content: [
              { type: "text", text: "What is it?" },
              { type: "image", image: `data:image/png;base64,${PIXEL}` },
            ],
          },
        ],
      }),
  ],
  [
    "chat, reasoning options",
    () =>
      generateText({
        model: provider.chat("o4-mini"),
        prompt: "Why?",
        maxOutputTokens: 500,
        maxRetries,
        providerOptions: { openai: { reasoningEffort: "medium", logprobs: true, metadata: { a: "b" } } },
      }),
  ],
  [
    "completions",
    () =>
      generateText({
        model: provider.completion("gpt-3.5-turbo-instruct"),
        prompt: "Once",
        maxOutputTokens: 20,
        maxRetries,
      }),
  ],
  ["embeddings", () => embed({ model: provider.embedding("text-embedding-3-small"), value: "a leaf", maxRetries })],
  [
    "embeddings, many",
    () =>
      embedMany({
        model: provider.embedding("text-embedding-3-small"),
        values: ["a", "b", "c"],
        maxRetries,
        providerOptions: { openai: { dimensions: 64 } },
      }),
  ],
  ["compatible, text", () => generateText({ model: compatible("llama-3.3-70b"), prompt: "Why?", maxRetries })],
  [
    "compatible, stream",
    () =>
      streamText({ model: compatible("llama-3.3-70b"), prompt: "Count.", maxRetries, onError: () => undefined }).text,
  ],
  [
    "compatible, tools",
    () => generateText({ model: compatible("qwen3-32b"), prompt: "Weather?", tools: { weather: sdkTool }, maxRetries }),
  ],
  [
    "compatible, object",
    () =>
      generateText({
        model: compatible("qwen3-32b"),
        prompt: "Is it spam?",
        output: Output.object({ schema: Verdict }),
        maxRetries,
      }),
  ],
  [
    "compatible, provider options",
    () =>
      generateText({
        model: compatible("qwen3-32b"),
        prompt: "Why?",
        maxRetries,
        topK: 20,
        providerOptions: { up: { top_k: 20, min_p: 0.05, repetition_penalty: 1.1, reasoningEffort: "low" } },
      }),
  ],
]);

const configuration = { baseURL: `${origin}/v1` };
const once = { apiKey: "none", configuration, maxRetries: 0 };
const human = [new SystemMessage("Be brief."), new HumanMessage("Why do leaves turn red?")];
const lcTool = langchainTool(() => "4", {
  name: "weather",
  description: "Weather of a city",
  schema: z.object({ city: z.string() }),
});

await capture("langchain-js", [
  ["chat", () => new ChatOpenAI({ ...once, model: "gpt-4o-mini" }).invoke(human)],
  [
    "chat, settings",
    () =>
      new ChatOpenAI({
        ...once,
        model: "gpt-4o-mini",
        temperature: 0,
        maxTokens: 300,
        topP: 0.9,
        stop: ["END"],
        frequencyPenalty: 0.1,
        presencePenalty: 0.1,
        user: "u",
      }).invoke(human),
  ],
  ["chat, stream", () => new ChatOpenAI({ ...once, model: "gpt-4o-mini", streaming: true }).invoke(human)],
  [
    "chat, stream with usage off",
    () => new ChatOpenAI({ ...once, model: "gpt-4o-mini", streaming: true, streamUsage: false }).invoke(human),
  ],
  ["chat, tools", () => new ChatOpenAI({ ...once, model: "gpt-4o" }).bindTools([lcTool]).invoke(human)],
  [
    "chat, tools with choice",
    () =>
      new ChatOpenAI({ ...once, model: "gpt-4o" })
        .bindTools([lcTool], { tool_choice: "weather", strict: true, parallel_tool_calls: false })
        .invoke(human),
  ],
  [
    "chat, structured by schema",
    () =>
      new ChatOpenAI({ ...once, model: "gpt-4o" })
        .withStructuredOutput(Verdict, { name: "verdict", method: "jsonSchema" })
        .invoke(human),
  ],
  [
    "chat, structured by function",
    () =>
      new ChatOpenAI({ ...once, model: "gpt-4o" })
        .withStructuredOutput(Verdict, { name: "verdict", method: "functionCalling" })
        .invoke(human),
  ],
  [
    "chat, structured by JSON mode",
    () =>
      new ChatOpenAI({ ...once, model: "gpt-4o" })
        .withStructuredOutput(Verdict, { name: "verdict", method: "jsonMode" })
        .invoke(human),
  ],
  [
    "chat, log probabilities",
    () => new ChatOpenAI({ ...once, model: "gpt-4o", logprobs: true, topLogprobs: 3 }).invoke(human),
  ],
  [
    "chat, reasoning model",
    () => new ChatOpenAI({ ...once, model: "o4-mini", reasoning: { effort: "low" }, maxTokens: 500 }).invoke(human),
  ],
  [
    "chat, a tool's answer",
    () =>
      new ChatOpenAI({ ...once, model: "gpt-4o" }).invoke([
        ...human,
        new AIMessage({ content: "", tool_calls: [{ id: "c1", name: "weather", args: { city: "Oslo" } }] }),
        new ToolMessage({ content: "4", tool_call_id: "c1" }),
      ]),
  ],
  [
    "chat, image",
    () =>
      new ChatOpenAI({ ...once, model: "gpt-4o" }).invoke([
        new HumanMessage({
          content: [
            { type: "text", text: "What?" },
            { type: "image_url", image_url: { url: `data:image/png;base64,${PIXEL}` } },
          ],
        }),
      ]),
  ],
  [
    "chat, further fields",
    () =>
      new ChatOpenAI({ ...once, model: "qwen", modelKwargs: { top_k: 5, repetition_penalty: 1.05, seed: 1 } }).invoke(
        human,
      ),
  ],
  ["responses", () => new ChatOpenAI({ ...once, model: "gpt-4.1", useResponsesApi: true }).invoke(human)],
  [
    "responses, tools",
    () =>
      new ChatOpenAI({ ...once, model: "gpt-4.1", useResponsesApi: true, maxTokens: 200 })
        .bindTools([lcTool])
        .invoke(human),
  ],
  [
    "completions",
    () => new LangChainCompletions({ ...once, model: "gpt-3.5-turbo-instruct", maxTokens: 30 }).invoke("Once upon"),
  ],
  ["embeddings", () => new OpenAIEmbeddings({ ...once, model: "text-embedding-3-small" }).embedQuery("a leaf")],
  [
    "embeddings, documents",
    () =>
      new OpenAIEmbeddings({
        ...once,
        model: "text-embedding-3-large",
        dimensions: 128,
        stripNewLines: true,
      }).embedDocuments(["a", "b"]),
  ],
]);

server.closeAllConnections();
server.close();
