/** The path of a target as the gateway reads it: what is not encoded well stays as it is. */
export function pathOf(target: string): string {
  const [path = ""] = target.split("?");
  return path.replace(/(?:%[0-9a-fA-F]{2})+/g, (escapes) => {
    try {
      return decodeURI(escapes);
    } catch {
      return escapes;
    }
  });
}

/** The path that a server serves: some resolve the dots of a target before the gateway sees it. */
export function servedPathOf(target: string): string {
  return pathOf(URL.parse(target, "http://gateway.test")?.pathname ?? "");
}
