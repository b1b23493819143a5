//! Drives stubs/rust/fanout.rs for the conformance test.
use std::io::Write;
use std::thread;

mod fanout;

use fanout::{Error, Json};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    if let Err(error) = run(args[0], &args[1..]) {
        let status = error
            .status
            .map_or(String::new(), |status| status.to_string());
        let used = error.attempts.map_or("\x1f".into(), |attempts| {
            format!("{attempts}\x1f{}", error.charged_usd.unwrap_or(0.0))
        });
        write(&format!(
            "\x15{}\x1f{}\x1f{}\x1f{}",
            error.code, status, error.retryable, used
        ));
    }
}

fn run(command: &str, args: &[&str]) -> Result<(), Error> {
    match command {
        "query" => match args {
            [prompt, model] => write(&fanout::query(prompt, *model)?),
            _ => write(&fanout::query(args[0], ())?),
        },
        "batch" => write_slots(fanout::batch(args, ())?),
        "batch-model" => write_slots(fanout::batch(&args[1..], args[0])?),
        "stream" => fanout::stream(args, (), |index, slot| {
            write(&format!("{index}\x1f{}", text(&slot)))
        })?,
        "json" => write(
            &fanout::query_json(args[0], schema(), ())?
                .get("n")
                .to_string(),
        ),
        "batch-json" => {
            for slot in fanout::batch(args, &[("schema", schema())])? {
                let value = slot.as_deref().ok().and_then(Json::parse);
                write(&value.map_or_else(|| text(&slot), |value| value.get("n").to_string()));
            }
        }
        "message" => message(args[0], args[1])?,
        "messages" => {
            for slot in fanout::batch(&args[1..], &must(args[0]))? {
                let message = slot.as_deref().ok().and_then(Json::parse);
                write(&message.map_or_else(|| text(&slot), |message| name_of(&message)));
            }
        }
        "agent" => {
            let options = [
                ("model", args[0].into()),
                ("tools", Json::List(vec![args[1].into()])),
                ("max_turns", 4.into()),
            ];
            write(&fanout::message(args[2], &options)?.get("content").text());
        }
        "dag" => {
            let task = |id: &str, prompt: &str| {
                Json::Object(vec![
                    ("id".into(), id.into()),
                    ("prompt".into(), prompt.into()),
                ])
            };
            let tasks = vec![task("a", args[0]), task("b", "{{a.output}} and two")];
            write(&fanout::dag(tasks, ())?.get("outputs").get("b").text());
        }
        "vote" => {
            let count = args[0].parse().expect("a number of votes");
            let vote = fanout::vote(args[1], count, ())?;
            write(&format!(
                "{}\x1f{}",
                vote.get("winner").text(),
                vote.get("votes")
            ));
        }
        "budget" => write(&fanout::budget()?.get("usd").get("remaining").to_string()),
        "usage" => write(&fanout::usage(false)?.get("llm_calls").to_string()),
        "final" => {
            fanout::final_result(args[0])?;
            write("ok");
        }
        "log" => {
            fanout::log(args[0], &[(args[1], args[2].into())])?;
            write("ok");
        }
        "tool" => {
            let input = Json::Object(vec![(args[1].into(), args[2].into())]);
            write(&fanout::tool_call(args[0], input)?.text());
        }
        "child" => {
            let calls: i32 = args[0].parse().expect("a number of calls");
            fanout::with_run(&[("calls", calls.into())], |run| {
                for prompt in &args[1..] {
                    write(&run.query(prompt, ())?);
                }
                Ok(())
            })?;
        }
        "nested" => {
            fanout::with_run(&[("calls", 4.into())], |child| {
                write(&child.query(args[0], ())?);
                child.with_run(&[("calls", 1.into())], |grandchild| {
                    write(&grandchild.query(args[0], ())?);
                    Ok(())
                })?;
                write(&child.query(args[0], ())?);
                Ok(())
            })?;
            write(&fanout::query(args[0], ())?);
        }
        "children" => {
            for answer in children(args) {
                write(&answer?);
            }
        }
        _ => panic!("no command {command}"),
    }
    Ok(())
}

fn schema() -> Json {
    let text = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#;
    Json::parse(text).expect("JSON")
}

/// Options that make the model ask for a tool.
fn must(model: &str) -> [(&str, Json); 3] {
    let object = |fields: Vec<(&str, Json)>| {
        let owned = fields.into_iter().map(|(name, value)| (name.into(), value));
        Json::Object(owned.collect())
    };
    let double = object(vec![("name", "double".into()), ("parameters", schema())]);
    let tool = object(vec![("type", "function".into()), ("function", double)]);
    [
        ("model", model.into()),
        ("tools", Json::List(vec![tool])),
        ("params", object(vec![("tool_choice", "required".into())])),
    ]
}

fn message(model: &str, prompt: &str) -> Result<(), Error> {
    let asked = fanout::message(prompt, &must(model))?;
    let id = first_call(&asked).get("id").text();
    let said = |role: &str, content: &str| {
        vec![
            ("role".to_string(), role.into()),
            ("content".to_string(), content.into()),
        ]
    };
    let mut result = said("tool", "8");
    result.push(("tool_call_id".into(), id.as_str().into()));
    let messages = Json::List(vec![
        Json::Object(said("user", prompt)),
        asked.clone(),
        Json::Object(result),
        Json::Object(said("user", "done")),
    ]);
    let answer = fanout::message(messages, model)?;
    write(&format!(
        "{}\x1f{}",
        name_of(&asked),
        answer.get("content").text()
    ));
    Ok(())
}

fn first_call(message: &Json) -> &Json {
    match message.get("tool_calls") {
        Json::List(calls) => &calls[0],
        _ => &Json::Null,
    }
}

fn name_of(message: &Json) -> String {
    first_call(message).get("function").get("name").text()
}

/// The answers to prompts, each in a child run of its own, at the same time.
fn children(prompts: &[&str]) -> Vec<Result<String, Error>> {
    let in_child = |prompt: &str| {
        let calls = 1.into();
        fanout::with_run(&[("calls", calls)], |run| run.query(prompt, ()))
    };
    thread::scope(|scope| {
        let threads: Vec<_> = prompts
            .iter()
            .map(|&prompt| scope.spawn(move || in_child(prompt)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .collect()
    })
}

fn write_slots(slots: Vec<Result<String, Error>>) {
    for slot in &slots {
        write(&text(slot));
    }
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
