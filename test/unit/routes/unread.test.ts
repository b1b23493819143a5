/** What followers have not read is bounded for each token and for all, and nobody is without a page. */
import { expect, it } from "vitest";
import { FOLLOWER_PAGE_CHARS_MAX, FOLLOWERS_UNREAD_CHARS_MAX, INSTANCE_UNREAD_CHARS_MAX } from "../../../src/limits.ts";
import { Unread } from "../../../src/routes/native/log/unread.ts";

it("has room for so many characters of one token, and again when they are read", () => {
  const unread = new Unread();
  expect(unread.take("a", FOLLOWERS_UNREAD_CHARS_MAX)).toBe(true);
  expect(unread.take("a", 1)).toBe(false);
  expect(unread.take("b", 1)).toBe(true);
  unread.give("a", 10);
  expect(unread.take("a", 10)).toBe(true);
  expect(unread.take("a", 1)).toBe(false);
});

it("has room for so many of all tokens, and always for a page of one that has none", () => {
  const unread = new Unread();
  let held = 0;
  for (let token = 0; held < INSTANCE_UNREAD_CHARS_MAX; token += 1) {
    expect(unread.take(`token ${token}`, FOLLOWERS_UNREAD_CHARS_MAX)).toBe(true);
    held += FOLLOWERS_UNREAD_CHARS_MAX;
  }
  expect(unread.take("token 0", 1)).toBe(false);
  expect(unread.take("another", FOLLOWER_PAGE_CHARS_MAX)).toBe(true);
  expect(unread.take("another", 1)).toBe(false);
});
