/** What followers have not read is bounded for each token and for all, and nobody is without a page. */
import { expect, it } from "vitest";
import {
  LOG_PAGE_CHARS_MAX,
  FOLLOWERS_UNREAD_CHARS_MAX,
  INSTANCE_UNREAD_CHARS_MAX,
  UNREAD_MS_MAX,
} from "../../../src/limits.ts";
import { Unread } from "../../../src/http/native/log/unread.ts";

it("has room for so many characters of all followers with one token, and again when they are read", () => {
  const unread = new Unread();
  const [first, second, other] = [unread.hold("a"), unread.hold("a"), unread.hold("b")];
  expect(first.take(FOLLOWERS_UNREAD_CHARS_MAX, 0)).toBe(true);
  expect(second.take(1, 0)).toBe(false);
  expect(other.take(1, 0)).toBe(true);
  first.give(10);
  expect(second.take(10, 0)).toBe(true);
  expect(second.take(1, 0)).toBe(false);
  first.release();
  first.release();
  expect(second.take(FOLLOWERS_UNREAD_CHARS_MAX - 10, 0)).toBe(true);
  expect(first.take(1, 0)).toBe(false);
});

it("has room for so many of all tokens, and always for a page of one that has none", () => {
  const unread = new Unread();
  let held = 0;
  for (let token = 0; held < INSTANCE_UNREAD_CHARS_MAX; token += 1) {
    expect(unread.hold(`token ${token}`).take(FOLLOWERS_UNREAD_CHARS_MAX, 0)).toBe(true);
    held += FOLLOWERS_UNREAD_CHARS_MAX;
  }
  expect(unread.hold("token 0").take(1, 0)).toBe(false);
  const another = unread.hold("another");
  expect(another.take(LOG_PAGE_CHARS_MAX, 0)).toBe(true);
  expect(another.take(1, 0)).toBe(false);
});

it("does not wait for a follower that the runtime has dropped: after ten minutes its characters count as read", () => {
  const unread = new Unread();
  unread.hold("a").take(FOLLOWERS_UNREAD_CHARS_MAX, 0);
  const next = unread.hold("a");
  expect(next.take(1, UNREAD_MS_MAX - 1)).toBe(false);
  expect(next.take(FOLLOWERS_UNREAD_CHARS_MAX, UNREAD_MS_MAX)).toBe(true);
});
