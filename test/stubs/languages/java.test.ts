import { join } from "node:path";
import { conformance } from "../conformance.ts";
import { ROOT } from "../language.ts";

conformance({
  name: "java",
  needs: [
    ["javac", "-version"],
    ["java", "-version"],
  ],
  build: (folder) => [
    // A public class must be in a file of its name.
    ["cp", join(ROOT, "test/stubs/drivers/java.java"), join(folder, "Driver.java")],
    [
      ...["javac", "--release", "11", "-encoding", "UTF-8", "-Xlint:all", "-Werror", "-d", folder],
      ...[join(ROOT, "stubs/java/Fanout.java"), join(folder, "Driver.java")],
    ] as ["javac", ...string[]],
  ],
  run: (folder) => ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-cp", folder, "Driver"],
});
