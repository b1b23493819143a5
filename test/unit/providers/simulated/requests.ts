/** Sends requests to the simulated upstream, and reads the streams that it answers with. */
import {
  simulatedAnswer,
  type SimulatedDeps,
  type SimulatedEndpoint,
} from "../../../../src/providers/simulated/provider.ts";

/** Deps whose timer elapses at once and records the delay. */
export function instantly(sleptMs: number[] = []): SimulatedDeps {
  return {
    now: () => 1_000_000,
    timer: (ms, elapsed) => {
      sleptMs.push(ms);
      queueMicrotask(elapsed);
      return () => {};
    },
    signal: new AbortController().signal,
    attempt: 1,
  };
}

export function post(endpoint: SimulatedEndpoint, body: unknown, deps: SimulatedDeps = instantly()): Promise<Response> {
  return simulatedAnswer(endpoint, JSON.stringify(body), deps);
}

export async function postJson(endpoint: SimulatedEndpoint, body: unknown) {
  const response = await post(endpoint, body);
  const json = JSON.parse(await response.text());
  return { status: response.status, json };
}

/** The data of each event, parsed but for `[DONE]`; an event's name must be its type. */
export async function postStream(endpoint: SimulatedEndpoint, body: Record<string, unknown>, deps?: SimulatedDeps) {
  const response = await post(endpoint, { stream: true, ...body }, deps);
  const text = await response.text();
  if (response.headers.get("content-type") !== "text/event-stream; charset=utf-8") throw new Error(text);
  if (text === "") return [];
  if (!text.endsWith("\n\n")) throw new Error("the last event does not end");
  return text
    .slice(0, -2)
    .split("\n\n")
    .map((event) => {
      const [, name, data = ""] = /^(?:event: (.*)\n)?data: (.*)$/.exec(event) ?? [];
      if (data === "[DONE]") return data;
      const json = JSON.parse(data);
      if (name !== json.type) throw new Error(`event ${name} is of type ${json.type}`);
      return json;
    });
}

/** The prompt as each endpoint takes it. */
export function bodyOf(endpoint: SimulatedEndpoint, model: string, prompt: string): Record<string, unknown> {
  switch (endpoint) {
    case "chat":
      return { model, messages: [{ role: "user", content: prompt }] };
    case "messages":
      return { model, max_tokens: 1_000, messages: [{ role: "user", content: prompt }] };
    case "completions":
      return { model, prompt };
    case "embeddings":
    case "responses":
      return { model, input: prompt };
  }
}

export const ENDPOINTS = ["chat", "completions", "embeddings", "responses", "messages"] as const;
export const STREAMED = ["chat", "completions", "responses", "messages"] as const;
