// Not TypeScript: the bundler makes each of these files its text, while the compiler would read some of them as modules.
import python from "../../stubs/python/fanout.py";

export const STUB_FILES = [{ lang: "python", file: "fanout.py", type: "text/x-python; charset=utf-8", text: python }];
