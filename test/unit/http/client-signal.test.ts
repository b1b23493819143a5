import { describe, expect, it } from "vitest";
import { ClientSignal } from "../../../src/http/client-signal.ts";

/** The signal of a request that counts who listens to it. */
function countingSignal() {
  const controller = new AbortController();
  const { signal } = controller;
  const listening = new Set<unknown>();
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  signal.addEventListener = (type: string, listener: EventListenerOrEventListenerObject) => {
    listening.add(listener);
    add(type, listener);
  };
  signal.removeEventListener = (type: string, listener: EventListenerOrEventListenerObject) => {
    listening.delete(listener);
    remove(type, listener);
  };
  return { controller, signal, listening };
}

describe("the signal of a request's client", () => {
  it("tells all who listen that the client has left, by one listener of its own", () => {
    const { controller, signal, listening } = countingSignal();
    const client = new ClientSignal(signal);
    const heard: string[] = [];
    client.addEventListener("abort", () => heard.push("body"));
    client.addEventListener("abort", () => heard.push("call"));
    expect(listening.size).toBe(1);
    controller.abort();
    expect(heard).toEqual(["body", "call"]);
    expect(client.aborted).toBe(true);
  });

  it("does not tell who listens no more, and tells the others", () => {
    const { controller, signal } = countingSignal();
    const client = new ClientSignal(signal);
    const heard: string[] = [];
    const body = (): void => void heard.push("body");
    client.addEventListener("abort", body);
    client.addEventListener("abort", () => heard.push("call"));
    client.removeEventListener("abort", body);
    controller.abort();
    expect(heard).toEqual(["call"]);
  });

  it("holds no listener at the request while nobody wants to hear, and hears again if somebody does", () => {
    const { controller, signal, listening } = countingSignal();
    const client = new ClientSignal(signal);
    expect(listening.size).toBe(0);
    const heard: string[] = [];
    const call = (): void => void heard.push("call");
    client.addEventListener("abort", call);
    client.removeEventListener("abort", call);
    client.removeEventListener("abort", call);
    expect(listening.size).toBe(0);
    client.addEventListener("abort", call);
    expect(listening.size).toBe(1);
    controller.abort();
    expect(heard).toEqual(["call"]);
  });
});
