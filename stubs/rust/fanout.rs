// Ask a fanout gateway from Rust (edition 2021, rustc 1.63 or newer). Copy this file into src/; it needs only `curl`.
//     let answer = fanout::query("What is 2 + 2?", &[])?;
//     let slots = fanout::batch(&prompts, &[("model", "up/model".into()), ("max_tokens", 200.0.into())])?;
//     fanout::stream(&prompts, &[], |index, slot| println!("{index}: {slot:?}"))?; // Each slot as it ends.
// Options are fields of the request; by its idempotency_key a program that starts again finds its answers. FANOUT_URL
// names the gateway (default http://127.0.0.1:8787), FANOUT_TOKEN carries the run token; GATEWAY_URL and GATEWAY_TOKEN
// stand in. FANOUT_TIMEOUT_S (660) is the longest silence borne. A lost connection is tried again under the same key:
// nothing is paid twice, and log and tool_call, which have none, are asked once.
#![allow(dead_code)]
use std::collections::{hash_map::RandomState, HashSet};
use std::{env, fmt, fs, hash::BuildHasher, hash::Hasher, io, io::BufRead, io::Write, process, sync::mpsc, thread, time};
/// A failed call. The code is the gateway's, or no_token, bad_url, unreachable, timeout, bad_answer, tool_error.
#[derive(Debug, Clone)]
pub struct Error { pub code: String, pub message: String, pub status: Option<u16>, pub retryable: bool }
pub type Result<T = Json> = std::result::Result<T, Error>;
impl fmt::Display for Error { fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result { f.write_str(&self.message) } }
impl std::error::Error for Error {}
pub type Fields<'a> = &'a [(&'a str, Json)];
/// Answers one prompt.
pub fn query(prompt: &str, options: Fields) -> Result<String> {
    Ok(ask("/query", "text", options, &[("prompt", prompt.into())], None)?.get("text").text())
}
/// Answers prompts asked at once, in their order. Fails for the whole request; a slot has an error of its own.
pub fn batch(prompts: &[&str], options: Fields) -> Result<Vec<Result<String>>> {
    let mut slots = vec![Ok(String::new()); prompts.len()];
    stream(prompts, options, |index, slot| slots[index] = slot).map(|_| slots)
}
/// Gives each slot as it ends, with the index of its prompt.
pub fn stream(prompts: &[&str], options: Fields, mut each: impl FnMut(usize, Result<String>)) -> Result<()> {
    let list: Vec<String> = prompts.iter().map(|&prompt| Json::from(prompt).0).collect();
    if prompts.is_empty() { return Ok(()); } let mut given = HashSet::new(); // A retry tells all slots again.
    ask("/batch", "type", options, &[("prompts", Json(format!("[{}]", list.join(","))))], Some(&mut |event| {
        let (index, error) = (event.get("index").0.parse().unwrap_or(usize::MAX), event.get("error"));
        if event.get("type").text() != "slot" || index >= prompts.len() || !given.insert(index) { return; }
        each(index, if error.is_some() { Err(failure(&error, 0)) } else { Ok(event.get("result").text()) });
    }))?;
    if given.len() < prompts.len() { Err(failure(&Json("null".into()), 200)) } else { Ok(()) }
}
/// Tells of usd, calls, prompt_tokens and completion_tokens, each with its limit, spent, reserved and remaining.
pub fn budget() -> Result { ask("/budget", "usd", &[], &[], None) }
/// Tells llm_calls, input_tokens, output_tokens, cost (USD) and calls_by_model; with reset they count anew.
pub fn usage(reset: bool) -> Result { ask(["/usage", "/usage?reset=1"][reset as usize], "llm_calls", &[], &[], None) }
/// Leaves the run's result in its log.
pub fn final_result(result: Json) -> Result {
    let output = if result.0.starts_with('"') { result.clone() } else { Json::from(&result.0[..]) };
    log("final_result", &[("output", output), ("data", result)])
}
/// Leaves an event in the run's log, with output (text), data (any value), code, reasoning, hasError or step.
pub fn log(kind: &str, facts: Fields) -> Result { ask("/log", "appended", facts, &[("event_type", kind.into())], None) }
/// Calls a tool that was registered with the run. The input is JSON, such as `Json(r#"{"city":"Oslo"}"#.into())`.
pub fn tool_call(name: &str, input: Json) -> Result {
    ask("/tool_call", "result", &[], &[("tool_name", name.into()), ("input", input)], None).map(|it| it.get("result"))
}
fn ask(path: &str, field: &str, options: Fields, own: Fields, mut take: Option<&mut dyn FnMut(&Json)>) -> Result {
    let var = |name| env::var(name).ok().map(|value| value.trim().to_string()).filter(|value| !value.is_empty());
    let base = var("FANOUT_URL").or_else(|| var("GATEWAY_URL")).unwrap_or_else(|| "http://127.0.0.1:8787".into());
    let token = var("FANOUT_TOKEN").or_else(|| var("GATEWAY_TOKEN")).ok_or(fail("no_token", "no FANOUT_TOKEN"))?;
    let silence_s = var("FANOUT_TIMEOUT_S").and_then(|value| value.parse().ok()).filter(|&s| s > 0.0).unwrap_or(660.0);
    if !base.starts_with("http://") && !base.starts_with("https://") { return Err(fail("bad_url", "FANOUT_URL")); }
    let hash = || RandomState::new().build_hasher().finish(); let fresh = format!("{:016x}{:016x}", hash(), hash());
    let key = options.iter().find(|field| field.0 == "idempotency_key").map_or(fresh.clone(), |field| field.1.text());
    let is_once = ["/log", "/tool_call", "/usage?reset=1"].contains(&path);
    let key = if is_once { "expect:".into() } else { format!("idempotency-key: {key}") };
    let (url, bearer) = (base.trim_end_matches('/').to_string() + path, format!("authorization: Bearer {token}"));
    let mut config = format!("{CURL}url = {url:?}\nheader = {bearer:?}\nheader = {key:?}\n");
    if ["//127.", "//localhost", "//[::1]"].iter().any(|near| base.contains(near)) { config += "noproxy = \"*\"\n"; }
    let (lost, file) = (|e: io::Error| fail("unreachable", &e.to_string()), Temporary(env::temp_dir().join(fresh)));
    if !own.is_empty() {
        let fields = options.iter().filter(|field| field.0 != "idempotency_key").chain(own);
        let all = fields.map(|(name, value)| format!("{name:?}:{}", value.0)).collect::<Vec<_>>().join(",");
        let mut new = fs::OpenOptions::new();
        #[cfg(unix)] std::os::unix::fs::OpenOptionsExt::mode(&mut new, 0o600);
        new.write(true).create_new(true).open(&file.0).and_then(|mut f| write!(f, "{{{all}}}")).map_err(lost)?;
        config += &format!("data-binary = \"@{}\"\n", file.0.display());
    }
    for pause_ms in [0, 250, 500, 1000, 2000].into_iter().take(if is_once { 1 } else { 5 }) {
        thread::sleep(time::Duration::from_millis(pause_ms));
        let (mut curl, pipe) = (process::Command::new("curl"), process::Stdio::piped); // No token on a command line.
        let mut curl = curl.arg("-qK-").stdin(pipe()).stdout(pipe()).spawn().map_err(lost)?;
        curl.stdin.take().expect("a pipe").write_all(config.as_bytes()).map_err(lost)?;
        let (output, (sender, lines)) = (io::BufReader::new(curl.stdout.take().expect("a pipe")), mpsc::channel());
        thread::spawn(move || output.lines().map_while(|line| line.ok()).all(|line| sender.send(line).is_ok()));
        let (mut answer, mut status) = (Json("null".into()), 0);
        loop { match lines.recv_timeout(time::Duration::from_secs_f64(silence_s)) {
            Ok(line) if line.trim().len() < 4 => status = line.parse().unwrap_or(status), // The last line.
            Ok(line) => { answer = Json(line.trim().into()); take.iter_mut().for_each(|take| take(&answer)) }
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(_) => { let _ = (curl.kill(), curl.wait()); return Err(fail("timeout", "the gateway is silent")); }
        } }
        let (kind, error, end) = (answer.get("type").text(), answer.get("error"), curl.wait().map_err(lost)?);
        let is_error = kind == "error" || kind != "slot" && error.is_some() || !answer.has(field) || status > 299;
        if end.success() && is_error { return Err(failure(&error, status)); }
        if end.success() && kind != "slot" && kind != "group_started" { return Ok(answer); }
    }
    Err(fail("unreachable", "the connection is lost"))
}
const CURL: &str = "silent\nno-buffer\ngloboff\nwrite-out = \"\\n%{http_code}\"\nheader = \"expect:\"\n\
    header = \"accept: application/x-ndjson\"\nheader = \"content-type: application/json\"\n";
struct Temporary(std::path::PathBuf); // Holds prompts, which are nobody else's to read.
impl Drop for Temporary { fn drop(&mut self) { let _ = fs::remove_file(&self.0); } }
fn fail(code: &str, text: &str) -> Error {
    Error { code: code.into(), message: text.into(), status: None, retryable: code != "no_token" && code != "bad_url" }
}
fn failure(error: &Json, status: u16) -> Error {
    let (code, message, is_later) = match error.0.chars().next() {
        Some('{') => (error.get("code").text(), error.get("message").text(), error.get("retryable").0 == "true"),
        Some('"') => ("tool_error".into(), error.text(), status == 408 || status == 503),
        _ => ("bad_answer".into(), format!("unexpected answer, status {status}"), false),
    };
    let status = error.get("status").0.parse().ok().or(Some(status).filter(|status| *status > 0));
    Error { code, message, status, retryable: is_later }
}
#[derive(Debug, Clone)] pub struct Json(pub String); // A JSON text.
impl From<f64> for Json { fn from(number: f64) -> Json { Json(number.to_string()) } }
impl From<&str> for Json { fn from(text: &str) -> Json {
    let quoted = |c: char| if c < ' ' || c == '"' || c == '\\' { format!("\\u{:04x}", c as u32) } else { c.into() };
    Json(format!("\"{}\"", text.chars().map(quoted).collect::<String>()))
} }
impl Json {
    fn is_some(&self) -> bool { !self.0.is_empty() && self.0 != "null" }
    fn has(&self, name: &str) -> bool { !self.get(name).0.is_empty() }
    pub fn get(&self, name: &str) -> Json { // A field of an object; empty where there is none.
        let pieces = self.pieces();
        let at = pieces.iter().step_by(2).position(|piece| Json(piece.to_string()).text() == name);
        Json(at.and_then(|at| pieces.get(2 * at + 1)).unwrap_or(&"").to_string())
    }
    fn pieces(&self) -> Vec<&str> { // Names and values of an object, items of a list; nothing of what is not whole.
        let (mut pieces, mut from, mut depth, mut is_text, mut is_escaped) = (vec![], 1, 0, false, false);
        for (at, c) in self.0.char_indices().filter(|_| self.0.starts_with(|c| c == '{' || c == '[')) {
            if depth == 1 && !is_text && "]},:".contains(c) { pieces.push(self.0[from..at].trim()); from = at + 1; }
            if c == '"' && !is_escaped { is_text = !is_text; }
            if !is_text { depth += "{[".contains(c) as i32 - "]}".contains(c) as i32; }
            is_escaped = c == '\\' && !is_escaped;
        }
        if depth == 0 { pieces } else { vec![] }
    }
    /// What a string holds; nothing where this is no string.
    pub fn text(&self) -> String {
        let mut chars = self.0.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or("").chars();
        let mut units = vec![]; // UTF-16: a character may come as two escapes.
        while let Some(c) = chars.next() {
            if c != '\\' { units.extend_from_slice(c.encode_utf16(&mut [0; 2])); continue; }
            let escape = chars.next().unwrap_or('"');
            let plain = "\"\\/bfnrt".find(escape).map_or(0xfffd, |at| b"\"\\/\x08\x0c\n\r\t"[at].into());
            let hex: String = chars.by_ref().take(if escape == 'u' { 4 } else { 0 }).collect();
            units.push(u16::from_str_radix(&hex, 16).unwrap_or(plain));
        }
        String::from_utf16_lossy(&units)
    }
}
