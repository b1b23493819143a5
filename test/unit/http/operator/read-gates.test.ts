import { describe, expect, it } from "vitest";
import { readGates, type NamedGate } from "../../../../src/http/operator/read-gates.ts";

const gates: NamedGate[] = [
  { name: "first", key: null, gate: "first" },
  { name: "second", key: "secret:A", gate: "second A" },
  { name: "second", key: "secret:B", gate: "second B" },
  { name: "third", key: null, gate: "third" },
];

describe("several gates", () => {
  it("are read each by itself: those that fail are named, with why, and the others are there in order", async () => {
    const logged: string[] = [];
    const look = ({ gate }: NamedGate): Promise<string> => {
      if (gate === "second A") return Promise.reject(new TypeError("a fault"));
      if (gate === "first") return Promise.reject(Object.assign(new Error("busy"), { overloaded: true }));
      if (gate === "third") return Promise.reject(new Error("storage has schema 2, this code knows 1"));
      return Promise.resolve(gate);
    };
    const { read, unread } = await readGates(gates, look, (message) => void logged.push(message));
    expect(read).toEqual(["second B"]);
    expect(unread).toMatchObject([
      { name: "first", key: null, code: "overloaded", retryable: true },
      { name: "second", key: "secret:A", code: "unreadable", retryable: false },
      { name: "third", key: null, code: "newer_storage", message: expect.stringContaining("deploy"), retryable: false },
    ]);
    expect(logged).toEqual([
      "the gate of first could not be read",
      "the gate of second (secret:A) could not be read",
      "the gate of third could not be read",
    ]);
  });
});
