//! Drives stubs/rust/fanout.rs for the conformance test.
use std::io::Write;

mod fanout;

use fanout::{Error, Json};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    if let Err(error) = run(args[0], &args[1..]) {
        let status = error.status.map_or(String::new(), |status| status.to_string());
        write(&format!("\x15{}\x1f{}\x1f{}", error.code, status, error.retryable));
    }
}

fn run(command: &str, args: &[&str]) -> Result<(), Error> {
    match command {
        "query" => {
            let options: Vec<(&str, Json)> = args[1..].iter().map(|&model| ("model", model.into())).collect();
            write(&fanout::query(args[0], &options)?);
        }
        "batch" => fanout::batch(args, &[])?.iter().for_each(|slot| write(&text(slot))),
        "batch-model" => {
            fanout::batch(&args[1..], &[("model", args[0].into())])?.iter().for_each(|slot| write(&text(slot)));
        }
        "stream" => fanout::stream(args, &[], |index, slot| write(&format!("{index}\x1f{}", text(&slot))))?,
        "budget" => write(&fanout::budget()?.get("usd").get("remaining").0),
        "usage" => write(&fanout::usage(false)?.get("llm_calls").0),
        "final" => {
            fanout::final_result(args[0].into())?;
            write("ok");
        }
        "log" => {
            fanout::log(args[0], &[(args[1], args[2].into())])?;
            write("ok");
        }
        "tool" => {
            let input = Json(format!("{{{}:{}}}", Json::from(args[1]).0, Json::from(args[2]).0));
            write(&fanout::tool_call(args[0], input)?.text());
        }
        _ => panic!("no command {command}"),
    }
    Ok(())
}

fn text(slot: &Result<String, Error>) -> String {
    match slot {
        Ok(text) => text.clone(),
        Err(error) => format!("[error] {error}"),
    }
}

fn write(record: &str) {
    print!("{record}\x1e");
    std::io::stdout().flush().unwrap();
}
