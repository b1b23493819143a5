//! Calls a fanout gateway from Rust (edition 2021, rustc 1.63 or newer). Copy this file into src/. It needs only `curl`
//! on the machine.
//!
//! ```ignore
//! let answer = fanout::query("What is 2 + 2?", "up/model")?; // A string in second place is the model.
//! let slots = fanout::batch(&prompts, &[("max_tokens", 200.into())])?; // () are no options.
//! fanout::stream(&prompts, (), |index, slot| println!("{index}: {slot:?}"))?; // Each slot as it ends.
//! // Calls by `run` can spend 0.05 USD at most.
//! let slots = fanout::with_run(&[("usd", 0.05.into())], |run| run.batch(&prompts, ()))?;
//! ```
//!
//! Options are the gateway's request fields. `idempotency_key` is sent as a header instead: a restarted program that
//! repeats the call under the same key gets the recorded answer at no cost.
//!
//! Environment variables:
//! - FANOUT_URL: the gateway's address (default http://127.0.0.1:8787); or GATEWAY_URL
//! - FANOUT_TOKEN: the run token, which POST /runs returned; or GATEWAY_TOKEN
//! - FANOUT_TIMEOUT_S: how long the gateway may be silent before a call fails (default 660)
//!
//! If the connection is lost, a request is repeated under the same key and is paid once. All other retries happen in
//! the gateway. `log` and `tool_call` are sent once.
#![allow(dead_code)]

use std::collections::{hash_map::RandomState, HashSet};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, BufRead, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::Mutex;
use std::time::Duration;
use std::{env, fmt, fs, path, thread};

/// The waits before a request whose connection was lost is repeated.
const RETRY_WAITS_MS: [u64; 4] = [250, 500, 1000, 2000];

/// Longer than the gateway's own limit, so that its error message arrives.
const TIMEOUT_S: f64 = 660.0;

const BUDGET_FIELDS: [&str; 4] = ["usd", "calls", "prompt_tokens", "completion_tokens"];

/// Names this life of the program, so that a run that records can replay the one before; chosen with its first request.
static EPOCH: Mutex<String> = Mutex::new(String::new());

/// How deep an answer may nest: more would overflow the stack.
const JSON_DEPTH_MAX: usize = 200;

/// A failed call.
#[derive(Debug, Clone)]
pub struct Error {
    /// The gateway's, or no_token, bad_url, unreachable, timeout, bad_answer, tool_error.
    pub code: String,
    pub message: String,
    /// The HTTP status, if there was an answer.
    pub status: Option<u16>,
    /// Whether the same call may succeed later.
    pub retryable: bool,
    /// How often a call was tried that was made, and what these attempts were charged, USD.
    pub attempts: Option<u32>,
    pub charged_usd: Option<f64>,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

pub type Result<T = Json> = std::result::Result<T, Error>;

/// Request fields: `()`, a model, or a list of names and values.
#[derive(Debug, Clone, Default)]
pub struct Fields(Vec<(String, Json)>);

impl From<()> for Fields {
    fn from(_: ()) -> Fields {
        Fields::default()
    }
}

impl From<&str> for Fields {
    fn from(model: &str) -> Fields {
        Fields(vec![("model".into(), model.into())])
    }
}

impl From<&[(&str, Json)]> for Fields {
    fn from(fields: &[(&str, Json)]) -> Fields {
        let owned = |(name, value): &(&str, Json)| (name.to_string(), value.clone());
        Fields(fields.iter().map(owned).collect())
    }
}

impl<const N: usize> From<&[(&str, Json); N]> for Fields {
    fn from(fields: &[(&str, Json); N]) -> Fields {
        fields[..].into()
    }
}

impl Fields {
    /// Adds a field, or replaces the one of that name.
    fn with(mut self, name: &str, value: Json) -> Fields {
        self.0.retain(|field| field.0 != name);
        self.0.push((name.into(), value));
        self
    }

    fn list(&self, name: &str) -> &[Json] {
        match self.0.iter().find(|field| field.0 == name) {
            Some((_, Json::List(values))) => values,
            _ => &[],
        }
    }

    /// Whether the tools are definitions for the model; tools of the run go by their names.
    fn defines_tools(&self) -> bool {
        self.list("tools")
            .iter()
            .any(|tool| !matches!(tool, Json::Text(_)))
    }

    fn includes_message(&self) -> bool {
        self.list("include")
            .iter()
            .any(|member| member.text() == "message")
    }

    /// The fields of a call that asks for the whole message, with the tools where the gateway takes them.
    fn with_messages(mut self) -> Fields {
        if self.defines_tools() {
            let mut params = match self.take("params") {
                Some(Json::Object(params)) => params,
                _ => vec![],
            };
            let tools = self.take("tools").unwrap_or(Json::Null);
            params.push(("tools".into(), tools));
            self = self.with("params", Json::Object(params));
        }
        self.with("include", Json::List(vec!["message".into()]))
    }

    /// Removes a field and returns its value.
    fn take(&mut self, name: &str) -> Option<Json> {
        let index = self.0.iter().position(|field| field.0 == name)?;
        Some(self.0.remove(index).1)
    }
}

/// Answers one prompt.
pub fn query(prompt: &str, options: impl Into<Fields>) -> Result<String> {
    OWN.query(prompt, options)
}

/// Answers one prompt with a value that fits a JSON Schema.
pub fn query_json(prompt: &str, schema: Json, options: impl Into<Fields>) -> Result {
    OWN.query_json(prompt, schema, options)
}

/// Returns the whole message of an answer to a prompt, or to a list of chat messages: content, tool_calls, …
///
/// With the option `tools` of a chat completion it may ask for them: sent back as one of the messages, with their
/// results, it goes on. Tools of the run go by their names: the gateway calls them itself, and the message is the last
/// of at most `max_turns` answers.
pub fn message(asked: impl Into<Json>, options: impl Into<Fields>) -> Result {
    OWN.message(asked, options)
}

/// Runs a graph of tasks, objects whose prompts refer to each other: `{{a.output}}`. The outputs of its last tasks are
/// in `outputs`, by id.
pub fn dag(tasks: Vec<Json>, options: impl Into<Fields>) -> Result {
    OWN.dag(tasks, options)
}

/// Answers a prompt so many times and returns the vote: decided, winner, agreement, … The option `aggregate` changes
/// its rule.
pub fn vote(prompt: &str, count: usize, options: impl Into<Fields>) -> Result {
    OWN.vote(prompt, count, options)
}

/// Answers prompts at once, in their order. Fails if the whole request fails; each slot has an error of its own. With
/// the option `schema`, a text is the JSON of the value that fits it; with `tools` of a chat completion, or `include`
/// with `message`, the JSON of the whole message.
pub fn batch(prompts: &[&str], options: impl Into<Fields>) -> Result<Vec<Result<String>>> {
    OWN.batch(prompts, options)
}

/// Calls `each` with every slot as it ends, and the index of its prompt.
pub fn stream(
    prompts: &[&str],
    options: impl Into<Fields>,
    each: impl FnMut(usize, Result<String>),
) -> Result<()> {
    OWN.stream(prompts, options, each)
}

/// Opens a child run for the time of `scope`: calls by the `Run` that it receives spend the child's budget.
///
/// The settings `usd`, `calls`, `prompt_tokens` and `completion_tokens` are limits. They are reserved in the budget of
/// the run that opens the child; a limit that is left out becomes an equal split of what remains there. Other settings
/// are the fields of POST /runs. When `scope` returns or panics, the child is closed and what it has not spent returns.
/// The error is that of `scope`, or else that of opening or closing the child.
pub fn with_run<T>(
    settings: impl Into<Fields>,
    scope: impl FnOnce(&Run) -> Result<T>,
) -> Result<T> {
    OWN.with_run(settings, scope)
}

/// Returns what is left of the run's budget, child runs included: usd, calls, prompt_tokens and completion_tokens, each
/// with limit, spent, reserved and remaining. The limit of an open child is reserved, what a closed one spent is spent.
pub fn budget() -> Result {
    OWN.budget()
}

/// Returns what the run itself has used: llm_calls, input_tokens, output_tokens, cost (USD) and calls_by_model. Child
/// runs are not included; what they spent is in `budget`. With `reset`, counting then starts at zero.
pub fn usage(reset: bool) -> Result {
    OWN.usage(reset)
}

/// Records the program's result in the run's log.
pub fn final_result(result: impl Into<Json>) -> Result<()> {
    OWN.final_result(result)
}

/// Appends an event to the run's log, with output (text), data (any value), code, reasoning, hasError or step.
pub fn log(event_type: &str, fields: impl Into<Fields>) -> Result<()> {
    OWN.log(event_type, fields)
}

/// Returns the result of a tool of the run.
pub fn tool_call(name: &str, input: Json) -> Result {
    OWN.tool_call(name, input)
}

/// A run, with the functions of this file for it.
#[derive(Debug, Clone)]
pub struct Run {
    /// Empty for the run of FANOUT_TOKEN.
    id: String,
    /// None: FANOUT_TOKEN.
    token: Option<String>,
}

/// The run of FANOUT_TOKEN.
const OWN: Run = Run {
    id: String::new(),
    token: None,
};

impl Run {
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The token of a child run, for another process: its FANOUT_TOKEN.
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    pub fn query(&self, prompt: &str, options: impl Into<Fields>) -> Result<String> {
        let fields = options.into().with("prompt", prompt.into());
        let answer = self.call("/query", "text", Some(fields))?;
        Ok(answer.get("text").text())
    }

    pub fn query_json(&self, prompt: &str, schema: Json, options: impl Into<Fields>) -> Result {
        let fields = options.into().with("prompt", prompt.into());
        let answer = self.call("/query", "json", Some(fields.with("schema", schema)))?;
        Ok(answer.get("json").clone())
    }

    pub fn message(&self, asked: impl Into<Json>, options: impl Into<Fields>) -> Result {
        let asked = asked.into();
        let is_text = matches!(asked, Json::Text(_));
        let name = if is_text { "prompt" } else { "messages" };
        let fields = options.into().with_messages().with(name, asked);
        let answer = self.call("/query", "message", Some(fields))?;
        Ok(answer.get("message").clone())
    }

    pub fn dag(&self, tasks: Vec<Json>, options: impl Into<Fields>) -> Result {
        let fields = options.into().with("tasks", Json::List(tasks));
        self.call("/dag", "tasks", Some(fields))
    }

    pub fn vote(&self, prompt: &str, count: usize, options: impl Into<Fields>) -> Result {
        let mut fields = options.into();
        let rule = Json::Object(vec![("strategy".into(), "vote".into())]);
        let rule = fields.take("aggregate").unwrap_or(rule);
        let prompts = Json::List(vec![prompt.into(); count]);
        let fields = fields.with("prompts", prompts).with("aggregate", rule);
        let answer = self.call("/batch", "aggregation", Some(fields))?;
        Ok(answer.get("aggregation").clone())
    }

    pub fn batch(
        &self,
        prompts: &[&str],
        options: impl Into<Fields>,
    ) -> Result<Vec<Result<String>>> {
        let mut slots = vec![Ok(String::new()); prompts.len()];
        self.stream(prompts, options, |index, slot| slots[index] = slot)?;
        Ok(slots)
    }

    pub fn stream(
        &self,
        prompts: &[&str],
        options: impl Into<Fields>,
        mut each: impl FnMut(usize, Result<String>),
    ) -> Result<()> {
        if prompts.is_empty() {
            return Ok(());
        }
        let list = prompts.iter().map(|&prompt| prompt.into()).collect();
        let mut fields = options.into().with("prompts", Json::List(list));
        if fields.defines_tools() {
            fields = fields.with_messages();
        }
        let name = if fields.includes_message() {
            "message"
        } else {
            "json"
        };
        let mut seen = HashSet::new(); // A repeated request streams all slots once more.
        let mut take = |event: &Json| {
            let index = event
                .get("index")
                .number()
                .map_or(usize::MAX, |n| n as usize);
            if event.get("type").text() != "slot" || index >= prompts.len() || !seen.insert(index) {
                return;
            }
            match event.get("error") {
                Json::Null if event.has(name) => each(index, Ok(event.get(name).to_string())),
                Json::Null => each(index, Ok(event.get("result").text())),
                error => each(index, Err(failure(error, None))),
            }
        };
        self.exchange("/batch", "type", Some(fields), Some(&mut take))?;
        if seen.len() < prompts.len() {
            return Err(failure(&Json::Null, Some(200)));
        }
        Ok(())
    }

    pub fn with_run<T>(
        &self,
        settings: impl Into<Fields>,
        scope: impl FnOnce(&Run) -> Result<T>,
    ) -> Result<T> {
        let (limits, others) = settings
            .into()
            .0
            .into_iter()
            .partition::<Vec<_>, _>(|(name, _)| BUDGET_FIELDS.contains(&name.as_str()));
        let mut fields = Fields(others);
        if !limits.is_empty() {
            fields = fields.with("budget", Json::Object(limits));
        }
        let opened = self.call("/runs", "token", Some(fields))?;
        let child = OpenRun {
            parent: self,
            run: Run {
                id: opened.get("id").text(),
                token: Some(opened.get("token").text()),
            },
        };
        let result = scope(&child.run);
        let closed = child.close();
        let value = result?;
        closed.map(|_| value)
    }

    pub fn budget(&self) -> Result {
        self.call("/budget", "usd", None)
    }

    pub fn usage(&self, reset: bool) -> Result {
        let path = if reset { "/usage?reset=1" } else { "/usage" };
        self.call(path, "llm_calls", None)
    }

    pub fn final_result(&self, result: impl Into<Json>) -> Result<()> {
        let data = result.into();
        let output = match &data {
            Json::Text(_) => data.clone(),
            other => Json::Text(other.to_string()),
        };
        self.log("final_result", &[("output", output), ("data", data)])
    }

    pub fn log(&self, event_type: &str, fields: impl Into<Fields>) -> Result<()> {
        let fields = fields.into().with("event_type", event_type.into());
        self.call("/log", "appended", Some(fields)).map(|_| ())
    }

    pub fn tool_call(&self, name: &str, input: Json) -> Result {
        let fields: Fields = (&[("tool_name", name.into()), ("input", input)]).into();
        let answer = self.call("/tool_call", "result", Some(fields))?;
        Ok(answer.get("result").clone())
    }

    fn call(&self, path: &str, expect: &str, fields: Option<Fields>) -> Result {
        self.exchange(path, expect, fields, None)
    }

    /// Sends a request, GET without fields, and repeats it if the connection is lost and that is safe. Returns the
    /// answer, or the last event of a stream, whose others `take` receives. Each object must have the field `expect`.
    fn exchange(
        &self,
        path: &str,
        expect: &str,
        fields: Option<Fields>,
        mut take: Option<&mut dyn FnMut(&Json)>,
    ) -> Result {
        let is_safe = !["/log", "/tool_call", "/usage?reset=1"].contains(&path);
        let accept = if take.is_some() { "x-ndjson" } else { "json" };
        let request = Request::new(self.token.as_deref(), path, fields, (is_safe, accept))?;
        let mut attempt = 0;
        loop {
            let lost = match request.send(expect, &mut take) {
                Attempt::Answered(answer) => return answer,
                Attempt::Lost(cause) => cause,
            };
            if !is_safe || attempt == RETRY_WAITS_MS.len() {
                let message = format!("no answer from the gateway: {lost}");
                return Err(fault("unreachable", message, true));
            }
            thread::sleep(Duration::from_millis(RETRY_WAITS_MS[attempt]));
            attempt += 1;
        }
    }
}

/// A child run that is to be closed.
struct OpenRun<'a> {
    parent: &'a Run,
    run: Run,
}

impl OpenRun<'_> {
    fn close(&self) -> Result {
        let path = format!("/runs/{}/close", self.run.id);
        self.parent.call(&path, "status", Some(Fields::default()))
    }
}

impl Drop for OpenRun<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            let _ = self.close();
        }
    }
}

/// A request as `curl` takes it.
struct Request {
    /// curl's configuration. It is written to curl's standard input, so that the token is on no command line.
    config: String,
    /// The file with the body, which lives as long as the request.
    _body: Option<BodyFile>,
    timeout: Duration,
}

/// The outcome of sending a request once.
enum Attempt {
    Answered(Result),
    /// The connection was lost: why.
    Lost(String),
}

impl Request {
    fn new(
        child_token: Option<&str>,
        path: &str,
        fields: Option<Fields>,
        (is_safe, accept): (bool, &str),
    ) -> Result<Request> {
        let base = variable("FANOUT_URL")
            .or_else(|| variable("GATEWAY_URL"))
            .unwrap_or_else(|| "http://127.0.0.1:8787".into());
        let token = child_token
            .map(String::from)
            .or_else(|| variable("FANOUT_TOKEN"))
            .or_else(|| variable("GATEWAY_TOKEN"));
        let token = token.ok_or_else(|| {
            let message = "FANOUT_TOKEN is not set: it is the token that POST /runs returns";
            fault("no_token", message.into(), false)
        })?;
        if !base.starts_with("http://") && !base.starts_with("https://") {
            let message = format!("FANOUT_URL must be an http:// or https:// address, not {base}");
            return Err(fault("bad_url", message, false));
        }
        let base = base.trim_end_matches('/');
        // With the /v1 that OpenAI's clients want, it is the same gateway.
        let url = base.strip_suffix("/v1").unwrap_or(base).to_string() + path;
        let mut options = vec![
            "silent".to_string(),
            "no-buffer".to_string(),
            "globoff".to_string(),
            // The status follows the answer, on a line of its own.
            "write-out = \"\\n%{http_code}\"".to_string(),
            format!("url = {}", quoted(&url)),
            header("expect:"),
            header(&format!("accept: application/{accept}")),
            header("content-type: application/json"),
            header(&format!("authorization: Bearer {token}")),
            header(&format!("x-fanout-epoch: {}", epoch())),
        ];
        // An egress proxy does not reach this machine's own addresses.
        if ["//127.", "//localhost", "//[::1]"]
            .iter()
            .any(|near| base.contains(near))
        {
            options.push("noproxy = \"*\"".into());
        }
        let mut body = None;
        if let Some(mut fields) = fields {
            let given = fields.take("idempotency_key").map(|key| key.text());
            if is_safe {
                let key = given.unwrap_or_else(random_name);
                options.push(header(&format!("idempotency-key: {key}")));
            }
            let file = BodyFile::create(&Json::Object(fields.0).to_string()).map_err(|cause| {
                fault("unreachable", format!("no temporary file: {cause}"), true)
            })?;
            options.push(format!(
                "data-binary = {}",
                quoted(&format!("@{}", file.0.display()))
            ));
            body = Some(file);
        }
        let timeout_s = variable("FANOUT_TIMEOUT_S")
            .and_then(|value| value.parse().ok())
            .filter(|&seconds| seconds > 0.0)
            .unwrap_or(TIMEOUT_S);
        Ok(Request {
            config: options.join("\n") + "\n",
            _body: body,
            timeout: Duration::from_secs_f64(timeout_s),
        })
    }

    fn send(&self, expect: &str, take: &mut Option<&mut dyn FnMut(&Json)>) -> Attempt {
        let (mut curl, lines) = match self.start() {
            Ok(started) => started,
            Err(cause) => return Attempt::Lost(format!("curl does not start: {cause}")),
        };
        let mut answer = None;
        let mut status = 0;
        loop {
            match lines.recv_timeout(self.timeout) {
                // An empty line keeps the connection alive; the last line is the status.
                Ok(line) if line.trim().len() < 4 => status = line.trim().parse().unwrap_or(status),
                Ok(line) => {
                    let object = Json::parse(&line).unwrap_or(Json::Null);
                    if let Some(take) = take {
                        take(&object);
                    }
                    answer = Some(object);
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    let _ = curl.kill();
                    let _ = curl.wait();
                    let message = format!("the gateway was silent for {:?}", self.timeout);
                    return Attempt::Answered(Err(fault("timeout", message, true)));
                }
            }
        }
        match curl.wait() {
            Ok(exit) if exit.success() => judge(answer.unwrap_or(Json::Null), status, expect),
            Ok(exit) => Attempt::Lost(format!("curl ended with {exit}")),
            Err(cause) => Attempt::Lost(cause.to_string()),
        }
    }

    /// Starts curl. Returns it, and the lines that it writes.
    fn start(&self) -> io::Result<(Child, Receiver<String>)> {
        let mut curl = Command::new("curl")
            .arg("-qK-")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        if let Some(mut input) = curl.stdin.take() {
            input.write_all(self.config.as_bytes())?;
        }
        let (sender, lines) = mpsc::channel();
        if let Some(output) = curl.stdout.take() {
            thread::spawn(move || send_lines(output, sender));
        }
        Ok((curl, lines))
    }
}

fn send_lines(output: ChildStdout, sender: mpsc::Sender<String>) {
    let lines = io::BufReader::new(output).lines();
    for line in lines.map_while(|line| line.ok()) {
        if sender.send(line).is_err() {
            return;
        }
    }
}

/// Decides on the last object of an answer that arrived whole.
fn judge(answer: Json, status: u16, expect: &str) -> Attempt {
    let kind = answer.get("type").text();
    let error = answer.get("error");
    let is_error = kind == "error" || (kind != "slot" && *error != Json::Null);
    if is_error || !answer.has(expect) || status > 299 {
        return Attempt::Answered(Err(failure(error, Some(status))));
    }
    if kind == "slot" || kind == "group_started" {
        return Attempt::Lost("the answer ended before its group_completed line".into());
    }
    Attempt::Answered(Ok(answer))
}

/// A file with prompts, which only its owner can read. It is removed when it goes out of scope.
struct BodyFile(path::PathBuf);

impl BodyFile {
    fn create(text: &str) -> io::Result<BodyFile> {
        let file = BodyFile(env::temp_dir().join(random_name()));
        let mut options = fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(&file.0)?.write_all(text.as_bytes())?;
        Ok(file)
    }
}

impl Drop for BodyFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn epoch() -> String {
    let mut epoch = EPOCH
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    if epoch.is_empty() {
        *epoch = random_name();
    }
    epoch.clone()
}

/// 32 random hexadecimal digits: the seeds of a hash map are random.
fn random_name() -> String {
    let random = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", random(), random())
}

fn variable(name: &str) -> Option<String> {
    let value = env::var(name).ok()?.trim().to_string();
    Some(value).filter(|value| !value.is_empty())
}

/// A text in curl's configuration.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn header(line: &str) -> String {
    format!("header = {}", quoted(line))
}

fn fault(code: &str, message: String, retryable: bool) -> Error {
    Error {
        code: code.into(),
        message,
        status: None,
        retryable,
        attempts: None,
        charged_usd: None,
    }
}

/// The error in an answer: an object, a tool's text, or null if the answer is not as expected.
fn failure(error: &Json, status: Option<u16>) -> Error {
    match error {
        Json::Object(_) => Error {
            code: error.get("code").text(),
            message: error.get("message").text(),
            status: error
                .get("status")
                .number()
                .map(|own| own as u16)
                .or(status),
            retryable: *error.get("retryable") == Json::Bool(true),
            attempts: error.get("attempts").number().map(|count| count as u32),
            charged_usd: error.get("charged_usd").number(),
        },
        Json::Text(message) => Error {
            code: "tool_error".into(),
            message: message.clone(),
            status,
            retryable: status == Some(408) || status == Some(503),
            attempts: None,
            charged_usd: None,
        },
        _ => Error {
            code: "bad_answer".into(),
            message: format!("unexpected answer with status {}", status.unwrap_or(0)),
            status,
            retryable: false,
            attempts: None,
            charged_usd: None,
        },
    }
}

/// A JSON value. `to_string()` is its text.
#[derive(Debug, Clone, PartialEq)]
pub enum Json {
    Null,
    Bool(bool),
    /// The digits as they are written: a large integer loses none.
    Number(String),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl From<&str> for Json {
    fn from(text: &str) -> Json {
        Json::Text(text.into())
    }
}

impl From<f64> for Json {
    fn from(number: f64) -> Json {
        Json::Number(number.to_string())
    }
}

impl From<i32> for Json {
    fn from(number: i32) -> Json {
        Json::Number(number.to_string())
    }
}

impl From<bool> for Json {
    fn from(value: bool) -> Json {
        Json::Bool(value)
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Json::Null => f.write_str("null"),
            Json::Bool(value) => write!(f, "{value}"),
            Json::Number(digits) => f.write_str(digits),
            Json::Text(text) => write_text(f, text),
            Json::List(items) => {
                f.write_str("[")?;
                for (index, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if index > 0 { "," } else { "" })?;
                }
                f.write_str("]")
            }
            Json::Object(fields) => {
                f.write_str("{")?;
                for (index, (name, value)) in fields.iter().enumerate() {
                    f.write_str(if index > 0 { "," } else { "" })?;
                    write_text(f, name)?;
                    write!(f, ":{value}")?;
                }
                f.write_str("}")
            }
        }
    }
}

fn write_text(f: &mut fmt::Formatter, text: &str) -> fmt::Result {
    f.write_str("\"")?;
    for c in text.chars() {
        match c {
            '"' | '\\' => write!(f, "\\{c}")?,
            '\0'..='\x1f' => write!(f, "\\u{:04x}", c as u32)?,
            _ => write!(f, "{c}")?,
        }
    }
    f.write_str("\"")
}

impl Json {
    /// Reads a JSON text; None if it is malformed.
    pub fn parse(text: &str) -> Option<Json> {
        let mut parser = Parser { rest: text };
        let value = parser.value(0)?;
        parser.skip_space();
        Some(value).filter(|_| parser.rest.is_empty())
    }

    /// A field of an object; null if it is missing.
    pub fn get(&self, name: &str) -> &Json {
        match self {
            Json::Object(fields) => fields
                .iter()
                .find(|field| field.0 == name)
                .map_or(&Json::Null, |field| &field.1),
            _ => &Json::Null,
        }
    }

    pub fn has(&self, name: &str) -> bool {
        matches!(self, Json::Object(fields) if fields.iter().any(|field| field.0 == name))
    }

    /// The text of a string; empty for any other value.
    pub fn text(&self) -> String {
        match self {
            Json::Text(text) => text.clone(),
            _ => String::new(),
        }
    }

    /// The number, if this is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Json::Number(digits) => digits.parse().ok(),
            _ => None,
        }
    }
}

/// Reads JSON from the front of a text.
struct Parser<'a> {
    rest: &'a str,
}

impl Parser<'_> {
    fn value(&mut self, depth: usize) -> Option<Json> {
        self.skip_space();
        match self.rest.chars().next()? {
            '{' if depth < JSON_DEPTH_MAX => self.object(depth),
            '[' if depth < JSON_DEPTH_MAX => self.list(depth),
            '"' => self.text().map(Json::Text),
            '-' | '0'..='9' => self.number(),
            't' => self.word("true", Json::Bool(true)),
            'f' => self.word("false", Json::Bool(false)),
            'n' => self.word("null", Json::Null),
            _ => None,
        }
    }

    fn object(&mut self, depth: usize) -> Option<Json> {
        let mut fields = Vec::new();
        self.skip('{');
        if self.skip('}') {
            return Some(Json::Object(fields));
        }
        loop {
            self.skip_space();
            let name = self.text()?;
            if !self.skip(':') {
                return None;
            }
            fields.push((name, self.value(depth + 1)?));
            if self.skip('}') {
                return Some(Json::Object(fields));
            }
            if !self.skip(',') {
                return None;
            }
        }
    }

    fn list(&mut self, depth: usize) -> Option<Json> {
        let mut items = Vec::new();
        self.skip('[');
        if self.skip(']') {
            return Some(Json::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            if self.skip(']') {
                return Some(Json::List(items));
            }
            if !self.skip(',') {
                return None;
            }
        }
    }

    fn text(&mut self) -> Option<String> {
        let mut chars = self.rest.strip_prefix('"')?.chars();
        // UTF-16: a character may be written as two escapes.
        let mut units = Vec::new();
        loop {
            match chars.next()? {
                '"' => break,
                '\\' => units.push(match chars.next()? {
                    'b' => 0x08,
                    'f' => 0x0c,
                    'n' => 0x0a,
                    'r' => 0x0d,
                    't' => 0x09,
                    'u' => {
                        let digits: String = chars.by_ref().take(4).collect();
                        u16::from_str_radix(&digits, 16).ok()?
                    }
                    other => u16::try_from(other as u32).ok()?,
                }),
                c => units.extend_from_slice(c.encode_utf16(&mut [0; 2])),
            }
        }
        self.rest = chars.as_str();
        Some(String::from_utf16_lossy(&units))
    }

    fn number(&mut self) -> Option<Json> {
        let is_part = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        digits.parse::<f64>().ok()?;
        self.rest = rest;
        Some(Json::Number(digits.into()))
    }

    fn word(&mut self, word: &str, value: Json) -> Option<Json> {
        self.rest = self.rest.strip_prefix(word)?;
        Some(value)
    }

    /// Skips a sign and the space before it, if it is next.
    fn skip(&mut self, sign: char) -> bool {
        self.skip_space();
        match self.rest.strip_prefix(sign) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start();
    }
}
