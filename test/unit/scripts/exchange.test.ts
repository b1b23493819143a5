import { describe, expect, it } from "vitest";
import { Exchange } from "../../../scripts/local/exchange.ts";

const CHUNKED = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";

function exchangeAfter(...sent: (string | null)[]): Exchange {
  const exchange = new Exchange();
  for (const piece of sent) {
    if (piece === null) exchange.clientSent();
    else exchange.serverSent(Buffer.from(piece, "latin1"));
  }
  return exchange;
}

describe("an exchange", () => {
  it.each<[string, boolean, (string | null)[]]>([
    ["no request", false, []],
    ["a request without an answer", true, [null]],
    ["an answer of announced length", false, [null, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"]],
    ["the headers of a stream", true, [null, CHUNKED]],
    [
      "headers of a stream whose last value ends in 0",
      true,
      [null, `${CHUNKED.slice(0, -2)}x-remaining: 0.10\r\n\r\n`],
    ],
    ["a last chunk that comes alone", false, [null, CHUNKED, "2\r\n{}\r\n", "0\r\n\r\n"]],
    ["white space that keeps a stream alive", true, [null, CHUNKED, "1\r\n \r\n"]],
    ["a stream's last chunk", false, [null, CHUNKED, "2\r\n{}\r\n0\r\n\r\n"]],
    ["an answer in one piece", false, [null, `${CHUNKED}2\r\n{}\r\n0\r\n\r\n`]],
    ["a second request after an answer", true, [null, `${CHUNKED}0\r\n\r\n`, null]],
    ["a request whose body arrives in pieces", true, [null, null]],
  ])("after %s: under way is %s", (_, isUnderWay, sent) => {
    expect(exchangeAfter(...sent).isUnderWay).toBe(isUnderWay);
  });
});
