import { join } from "node:path";
import { conformance } from "../conformance.ts";
import { ROOT } from "../language.ts";

/** `go 1.19` keeps the stub to the language of that version. */
const LAY_OUT = `
  cd "$1" && mkdir -p fanout && printf 'module driver\\n\\ngo 1.19\\n' > go.mod &&
  cp "$2/stubs/go/fanout.go" fanout/ && cp "$2/test/stubs/drivers/go.go" main.go`;

conformance({
  name: "go",
  needs: [["go", "version"]],
  build: (folder) => [
    ["sh", "-c", LAY_OUT, "sh", folder, ROOT],
    ["sh", "-c", 'cd "$1" && go vet ./... && go build -o driver .', "sh", folder],
  ],
  run: (folder) => [join(folder, "driver")],
  env: () => ({ GOPROXY: "off", GOFLAGS: "-mod=mod", GOTOOLCHAIN: "local", GO111MODULE: "on", CGO_ENABLED: "0" }),
});
