// Not TypeScript: the bundler makes each of these files its text, while the compiler would read some of them as modules.
import bash from "../../../stubs/bash/fanout.sh";
import csharp from "../../../stubs/csharp/Fanout.cs";
import go from "../../../stubs/go/fanout.go";
import java from "../../../stubs/java/Fanout.java";
import javascript from "../../../stubs/javascript/fanout.mjs";
import julia from "../../../stubs/julia/Fanout.jl";
import lua from "../../../stubs/lua/fanout.lua";
import perl from "../../../stubs/perl/Fanout.pm";
import php from "../../../stubs/php/fanout.php";
import pyodide from "../../../stubs/pyodide/fanout_pyodide.py";
import pythonAsync from "../../../stubs/python-async/fanout_async.py";
import python from "../../../stubs/python/fanout.py";
import r from "../../../stubs/r/fanout.R";
import ruby from "../../../stubs/ruby/fanout.rb";
import rust from "../../../stubs/rust/fanout.rs";
import script from "../../../stubs/script/fanout_script.mjs";
import scriptPython from "../../../stubs/script-python/fanout_script.py";
import typescript from "../../../stubs/typescript/fanout.d.mts";

const typed = (type) => `${type}; charset=utf-8`;
const PLAIN = typed("text/plain");
const PYTHON = typed("text/x-python");
const JAVASCRIPT = typed("text/javascript");

export const STUB_FILES = [
  { lang: "python", file: "fanout.py", type: PYTHON, text: python },
  { lang: "python-async", file: "fanout_async.py", type: PYTHON, text: pythonAsync },
  { lang: "pyodide", file: "fanout_pyodide.py", type: PYTHON, text: pyodide },
  { lang: "javascript", file: "fanout.mjs", type: JAVASCRIPT, text: javascript },
  { lang: "typescript", file: "fanout.d.mts", type: PLAIN, text: typescript },
  { lang: "script", file: "fanout_script.mjs", type: JAVASCRIPT, text: script },
  { lang: "script-python", file: "fanout_script.py", type: PYTHON, text: scriptPython },
  { lang: "bash", file: "fanout.sh", type: typed("text/x-shellscript"), text: bash },
  { lang: "go", file: "fanout.go", type: PLAIN, text: go },
  { lang: "ruby", file: "fanout.rb", type: PLAIN, text: ruby },
  { lang: "php", file: "fanout.php", type: PLAIN, text: php },
  { lang: "perl", file: "Fanout.pm", type: PLAIN, text: perl },
  { lang: "lua", file: "fanout.lua", type: PLAIN, text: lua },
  { lang: "r", file: "fanout.R", type: PLAIN, text: r },
  { lang: "julia", file: "Fanout.jl", type: PLAIN, text: julia },
  { lang: "java", file: "Fanout.java", type: PLAIN, text: java },
  { lang: "rust", file: "fanout.rs", type: PLAIN, text: rust },
  { lang: "csharp", file: "Fanout.cs", type: PLAIN, text: csharp },
];
