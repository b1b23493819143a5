import { describe, expect, it } from "vitest";
import { parseToolHosts, type ToolHost } from "../../../src/tools/hosts.ts";
import { checkToolUrl } from "../../../src/tools/url.ts";

function hosts(text: string): ToolHost[] {
  const parsed = parseToolHosts(text);
  if (parsed === null) throw new Error(`${text} is no list of hosts`);
  return parsed;
}

const allows = (url: string, listed = ""): boolean => checkToolUrl(url, hosts(listed)).ok;

function problemOf(url: string, listed = ""): string {
  const checked = checkToolUrl(url, hosts(listed));
  if (checked.ok) throw new Error(`${url} was allowed as ${checked.url}`);
  return checked.problem;
}

describe("an address that a tool may have", () => {
  it.each([
    ["https://tools.example.com/search", "https://tools.example.com/search"],
    ["http://tools.example.com:8080/a?key=b", "http://tools.example.com:8080/a?key=b"],
    ["HTTPS://Tools.Example.COM", "https://tools.example.com/"],
    ["https://bücher.example/x", "https://xn--bcher-kva.example/x"],
    ["https://a_b.example.com/", "https://a_b.example.com/"],
    ["https://tools.example.com./x", "https://tools.example.com./x"],
    ["https://8.8.8.8/x", "https://8.8.8.8/x"],
    ["https://[2606:4700::1111]/x", "https://[2606:4700::1111]/x"],
    ["https://tools.example.com/x#part", "https://tools.example.com/x"],
    ["https://localhost.example.com/", "https://localhost.example.com/"],
    ["https://internal.example.com/", "https://internal.example.com/"],
    ["https://not.alocal/", "https://not.alocal/"],
  ])("is %s, fetched as %s", (url, fetched) => {
    expect(checkToolUrl(url, [])).toEqual({ ok: true, url: fetched });
  });

  it("is the one that was checked, whatever its text might be read as elsewhere", () => {
    expect(checkToolUrl("https://tools.example.com\\@127.0.0.1/", [])).toEqual({
      ok: true,
      url: "https://tools.example.com/@127.0.0.1/",
    });
    expect(checkToolUrl("ht\ntps://tools.exam\tple.com/ ", [])).toEqual({
      ok: true,
      url: "https://tools.example.com/",
    });
  });
});

describe("an address that no tool may have", () => {
  it.each([
    "",
    "tools.example.com",
    "/search",
    "//tools.example.com",
    "https://",
    "https://[::1",
    "http://a b.example/",
  ])("is %j, which is no address", (url) => expect(problemOf(url)).toBe("expected an http:// or https:// address"));

  it.each(["ftp://tools.example.com", "file:///etc/passwd", "data:text/plain,x", "javascript:1", "ws://a.example.com"])(
    "is %s, which is not http",
    (url) => expect(problemOf(url)).toBe("expected an http:// or https:// address"),
  );

  it.each(["https://me@tools.example.com/", "https://me:pass@tools.example.com/", "https://:pass@tools.example.com/"])(
    "is %s, which holds a credential, also where its host is listed",
    (url) => {
      expect(problemOf(url)).toContain("user name or password");
      expect(problemOf(url, "tools.example.com")).toContain("user name or password");
    },
  );
});

describe("an IPv4 address", () => {
  // The first and the last address of each range that is not the public internet's.
  it.each([
    ["0.0.0.0", "0.255.255.255"],
    ["10.0.0.0", "10.255.255.255"],
    ["100.64.0.0", "100.127.255.255"],
    ["127.0.0.0", "127.255.255.255"],
    ["169.254.0.0", "169.254.255.255"],
    ["172.16.0.0", "172.31.255.255"],
    ["192.0.0.0", "192.0.0.255"],
    ["192.0.2.0", "192.0.2.255"],
    ["192.88.99.0", "192.88.99.255"],
    ["192.168.0.0", "192.168.255.255"],
    ["198.18.0.0", "198.19.255.255"],
    ["198.51.100.0", "198.51.100.255"],
    ["203.0.113.0", "203.0.113.255"],
    ["224.0.0.0", "239.255.255.255"],
    ["240.0.0.0", "255.255.255.255"],
    ["168.63.129.16", "168.63.129.16"],
  ])("from %s to %s is refused", (first, last) => {
    expect(problemOf(`https://${first}/`)).toContain("private, local or reserved");
    expect(problemOf(`https://${last}/`)).toContain("private, local or reserved");
  });

  it.each([
    "1.0.0.0",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "169.253.255.255",
    "169.255.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "192.0.1.0",
    "192.0.3.0",
    "192.167.255.255",
    "192.169.0.0",
    "198.17.255.255",
    "198.20.0.0",
    "203.0.114.0",
    "223.255.255.255",
    "168.63.129.15",
    "168.63.129.17",
  ])("beside such a range is public: %s", (address) => expect(allows(`https://${address}/`)).toBe(true));

  it.each([
    ["one number", "http://2130706433/"],
    ["hexadecimal", "http://0x7f000001/"],
    ["hexadecimal parts", "http://0x7f.0x0.0x0.0x1/"],
    ["octal", "http://0177.0.0.1/"],
    ["octal, one number", "http://017700000001/"],
    ["mixed bases", "http://0x7f.0.01/"],
    ["two parts", "http://127.1/"],
    ["three parts", "http://127.0.1/"],
    ["a last dot", "http://127.0.0.1./"],
    ["full-width digits", "http://１２７.０.０.１/"],
    ["full-width dots", "http://127。0。0。1/"],
    ["circled digits", "http://①②⑦.0.0.1/"],
    ["escaped digits", "http://%31%32%37.0.0.1/"],
    ["an escaped dot", "http://127%2e0.0.1/"],
    ["zero as one number", "http://0/"],
    ["the metadata address as one number", "http://2852039166/"],
    ["the metadata address in hexadecimal", "http://0xa9fea9fe/"],
    ["a port and a path", "http://169.254.169.254:80/latest/meta-data/"],
  ])("is recognised when it is written as %s", (_, url) => {
    expect(problemOf(url)).toContain("private, local or reserved");
  });
});

describe("an IPv6 address", () => {
  it.each([
    ["unspecified", "[::]"],
    ["loopback", "[::1]"],
    ["loopback, written out", "[0:0:0:0:0:0:0:1]"],
    ["loopback, mapped", "[::ffff:127.0.0.1]"],
    ["private, mapped in hexadecimal", "[::ffff:a00:1]"],
    ["even public, mapped", "[::ffff:8.8.8.8]"],
    ["IPv4-compatible", "[::127.0.0.1]"],
    ["translated by NAT64", "[64:ff9b::7f00:1]"],
    ["locally translated", "[64:ff9b:1::a00:1]"],
    ["discard-only", "[100::1]"],
    ["link-local", "[fe80::1]"],
    ["link-local, its last", "[febf:ffff::1]"],
    ["site-local", "[fec0::1]"],
    ["unique local", "[fc00::1]"],
    ["unique local, Amazon's metadata", "[fd00:ec2::254]"],
    ["multicast", "[ff02::1]"],
    ["Teredo", "[2001::1]"],
    ["an ORCHID", "[2001:20::1]"],
    ["a protocol assignment, its last", "[2001:1ff:ffff::1]"],
    ["an example", "[2001:db8::1]"],
    ["6to4 of a private address", "[2002:a00:1::1]"],
    ["a later example", "[3fff:fff::1]"],
    ["below the global eighth", "[1fff::1]"],
    ["above the global eighth", "[4000::1]"],
  ])("that is %s is refused", (_, host) => {
    expect(problemOf(`http://${host}/`)).toContain("private, local or reserved");
  });

  it.each(["[2000::1]", "[2001:200::1]", "[2001:db7::1]", "[2001:db9::1]", "[2003::1]", "[3fff:1000::1]", "[3ffe::1]"])(
    "of the global eighth is public: %s",
    (host) => expect(allows(`https://${host}/`)).toBe(true),
  );
});

describe("a name", () => {
  it.each([
    "localhost",
    "LOCALHOST",
    "localhost.",
    "a.localhost",
    "printer.local",
    "db.internal",
    "metadata.google.internal",
    "metadata.google.internal.",
    "metadata.goog",
    "localhost.localdomain",
    "nas.lan",
    "nas.home",
    "nas.home.arpa",
    "wiki.corp",
    "wiki.intranet",
    "a.private",
    "nothing.invalid",
    "abcdef.onion",
    "metadata",
    "instance-data",
    "tools",
    "ⓛocalhost",
    "tools..example.com",
    ".example.com",
    "tools.example.com..",
  ])("that is not of the public internet is refused: %s", (name) => {
    expect(problemOf(`https://${name}/`)).toContain("outside the public internet");
  });
});

describe("with a list of hosts", () => {
  it("what it names may be private", () => {
    expect(allows("http://127.0.0.1:9000/search", "127.0.0.1:9000")).toBe(true);
    expect(allows("http://localhost:9000/search", "localhost")).toBe(true);
    expect(allows("http://[::1]:9000/search", "[::1]:9000")).toBe(true);
    expect(allows("http://tools/search", "tools")).toBe(true);
  });

  it("nothing else may be called, however public", () => {
    expect(problemOf("https://tools.example.com/", "127.0.0.1:9000")).toContain("TOOL_HOSTS does not list");
    expect(problemOf("http://127.0.0.2:9000/", "127.0.0.1:9000")).toContain("TOOL_HOSTS does not list");
  });

  it("a port that it names is the only one; without one, any will do", () => {
    expect(allows("http://127.0.0.1:9001/", "127.0.0.1:9000")).toBe(false);
    expect(allows("http://127.0.0.1:9001/", "127.0.0.1")).toBe(true);
    expect(allows("http://a.example.com/", "a.example.com:80")).toBe(true);
    expect(allows("https://a.example.com/", "a.example.com:80")).toBe(false);
    expect(allows("https://a.example.com/", "a.example.com:443")).toBe(true);
    expect(allows("https://a.example.com:443/", "a.example.com:443")).toBe(true);
  });

  it("a name is that name alone, in every spelling and with its last dot", () => {
    expect(allows("https://tools.example.com./", "TOOLS.example.com")).toBe(true);
    expect(allows("https://tools.example.com/", "tools.example.com.")).toBe(true);
    expect(allows("http://0x7f.1:9000/", "127.0.0.1:9000")).toBe(true);
    expect(allows("https://a.tools.example.com/", "tools.example.com")).toBe(false);
    expect(allows("https://example.com/", "tools.example.com")).toBe(false);
    expect(allows("https://tools.example.com.evil.example/", "tools.example.com")).toBe(false);
  });

  it("each of its entries counts", () => {
    const listed = " a.example.com , b.example.com:8443,, [::1] ";
    expect(allows("https://a.example.com/", listed)).toBe(true);
    expect(allows("https://b.example.com:8443/", listed)).toBe(true);
    expect(allows("https://b.example.com/", listed)).toBe(false);
    expect(allows("http://[::1]:1/", listed)).toBe(true);
  });
});

describe("the list itself", () => {
  it("is empty where it is not set", () => {
    expect(parseToolHosts("")).toEqual([]);
  });

  it.each([
    " ",
    ",",
    "https://tools.example.com",
    "tools.example.com/path",
    "me@tools.example.com",
    "tools.example.com:",
    "tools.example.com:0",
    "tools.example.com:65536",
    "tools.example.com:http",
    "*",
    "*.example.com",
    "tools.example.com?",
    "a b",
    "::1",
    "[::1",
    "tools.example.com;other.example.com",
    "a.example.com,http://b",
  ])("is refused when it is %j", (text) => expect(parseToolHosts(text)).toBeNull());

  it("may name the highest port", () => {
    expect(parseToolHosts("tools.example.com:65535")).toEqual([{ host: "tools.example.com", port: 65_535 }]);
  });
});
