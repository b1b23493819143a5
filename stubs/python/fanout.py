"""Ask a fanout gateway from Python 3.8 or newer. One file, standard library only: copy it into the sandbox.

    from fanout import llm_query, llm_query_batch
    answer = llm_query("What is 2 + 2?")
    answers = llm_query_batch(["Summarise: " + page for page in pages], max_tokens=200)

FANOUT_URL names the gateway (default http://127.0.0.1:8787), FANOUT_TOKEN carries the run token; GATEWAY_URL and
GATEWAY_TOKEN stand in for them. FANOUT_TIMEOUT_S (default 660) is the longest silence that a call bears. A keyword
argument is sent as the request field of that name; `idempotency_key` names the request, so that a restarted program
finds its answers. Where the connection is lost, the same is asked again under the same key and paid once; nothing
else is repeated here: the gateway does that. For asyncio there is /stubs/python-async.
"""
import http.client, json, os, re, sys, time
from urllib import request as urlrequest

class FanoutError(Exception):
    """A failed call. `code`: one of the gateway's, or `no_token`, `bad_url`, `unreachable`, `timeout`, `bad_answer`,
    `tool_error`; `status`: HTTP status or None; `retryable`: the same call may succeed later; `retry_after_s`."""
    def __init__(self, message, code="unknown", status=None, retryable=False, retry_after_s=None):
        super().__init__(message)
        self.code, self.status, self.retryable, self.retry_after_s = code, status, retryable, retry_after_s

def llm_query(prompt, model=None, **params):
    """The answer to one prompt (a string, or a list of chat messages). Raises FanoutError when the call fails."""
    return _ask("/query", "text", {"model": model, **_item(prompt), **params})["text"]

def llm_query_batch(prompts, model=None, **options):
    """The answers to many prompts, asked at once, in the order of `prompts`. A failed one is the string
    "[error] message" in its place and touches no other. Raises FanoutError only when the whole request fails."""
    prompts, body = _batch(prompts, model, options)
    results = _ask("/batch", "results", body)["results"] if prompts else []
    if len(results) != len(prompts):
        raise FanoutError("asked {} prompts, got {} results".format(len(prompts), len(results)), "bad_answer")
    return results
rlm_query = llm_query  # The names that other systems use.
llm_query_batched = llm_batch = rlm_query_batched = llm_query_batch

def llm_stream(prompts, model=None, **options):
    """Like llm_query_batch, but yields events while they happen: a dict per slot as it ends (`"type": "slot"`, its
    `index`, its `result`, its `error` or None), each slot once, and `"type": "group_completed"` last."""
    (prompts, body), given = _batch(prompts, model, options), set()
    def events(reply):
        for line in filter(bytes.strip, reply):  # Empty lines keep the connection alive.
            if not line.endswith(b"\n"):
                break
            event = _parse(line)
            if event.get("type", "error") == "error":
                raise _refusal(event)
            name = event.get("index", event["type"])
            if name not in given:  # Else it came over a connection that was lost since.
                given.add(name)
                yield event
            if name == "group_completed":
                return
        raise ConnectionError("the answer ended before its group_completed line")
    if prompts:
        yield from _exchange("/batch", body, events, "application/x-ndjson")

def llm_budget():
    """What is left of the run's budget: `usd`, `calls`, …, each with `limit`, `spent`, `reserved`, `remaining`."""
    return _ask("/budget", "usd")
def llm_usage(reset=False):
    """What the run has used since the last reset: `llm_calls`, `input_tokens`, `output_tokens`, `cost`, …"""
    return _ask("/usage?reset=1" if reset else "/usage", "llm_calls")
def llm_run():
    """The document of the run that the token belongs to: its budget, width and figures."""
    return _ask("/run", "budget")

def tool_call(tool_name, **input):
    """What the run's tool of that name answers to `input`. Sent once: a tool may do something each time."""
    return _ask("/tool_call", "result", {"tool_name": tool_name, "input": input})["result"]
def llm_log(event_type, **fields):
    """Leaves an event in the run's log. Fields: code, output, hasError, reasoning, usage, timestamps, step, data."""
    _ask("/log", "appended", dict(fields, event_type=event_type))

def FINAL(x):
    """Leaves the program's result, any JSON value, in the run's log, as its event `final_result`."""
    llm_log("final_result", output=x if isinstance(x, str) else json.dumps(x), data=x)
def FINAL_VAR(name):
    """FINAL with the value of the caller's variable of that name."""
    FINAL({**sys._getframe(1).f_globals, **sys._getframe(1).f_locals}[name.strip("'\" ")])
def SUBMIT(**fields):
    """FINAL with a dict of the arguments."""
    FINAL(fields)

def _item(prompt):
    return prompt if isinstance(prompt, dict) else {"messages" if isinstance(prompt, list) else "prompt": prompt}
def _batch(prompts, model, options):
    if isinstance(prompts, (str, bytes, dict)):  # A string is a sequence too: each letter would become a paid call.
        raise TypeError("prompts must be a list of prompts, not one " + type(prompts).__name__)
    prompts = list(prompts)
    asked = {"prompts": prompts} if all(isinstance(p, str) for p in prompts) else {"items": [*map(_item, prompts)]}
    return prompts, {**asked, "model": model, **options}

def _ask(path, field, body=None):
    answer = _parse(*_exchange(path, body, lambda reply: [reply.read()]))  # White space before it kept a wait alive.
    if field not in answer:  # A failure after the headers were sent: status 200, the error inside.
        raise _refusal(answer)
    return answer

class _AsItIs(urlrequest.HTTPErrorProcessor):  # Follows no redirect: that would carry the token to another host.
    http_response = https_response = lambda self, request, reply: reply

def _exchange(path, body, read, accept="application/json"):
    """Yields what `read` finds in the gateway's answer. What spends is asked again where the connection is lost."""
    base, token = ((os.environ.get("FANOUT_" + name) or os.environ.get("GATEWAY_" + name) or "").strip()
                   for name in ("URL", "TOKEN"))
    base, spends = base.rstrip("/") or "http://127.0.0.1:8787", path in ("/query", "/batch")
    address = re.fullmatch(r"https?://([\w.-]+|\[[\da-f:.]+\])(:\d+)?(/\S*)?", base, re.I)
    if not re.fullmatch("[!-~]+", token):
        raise FanoutError("FANOUT_TOKEN is not set: it carries the token that POST /runs answers with", "no_token")
    if not address:
        raise FanoutError("FANOUT_URL must be an http:// or https:// address, not {!r}".format(base), "bad_url")
    headers = {"authorization": "Bearer " + token, "accept": accept, "content-type": "application/json",
               "user-agent": "fanout-stub"}  # Some proxies, Cloudflare's among them, refuse urllib's own name.
    body = {name: value for name, value in (body or {}).items() if (name, value) != ("model", None)}
    if spends:
        headers["idempotency-key"] = body.pop("idempotency_key", None) or os.urandom(16).hex()
    request = urlrequest.Request(base + path, json.dumps(body).encode("ascii") if body else None, headers)
    silence_s = float(os.environ.get("FANOUT_TIMEOUT_S") or 660 + (body.get("timeout_ms") or 0) / 1000)
    loopback = re.fullmatch(r"localhost|127\..*|\[::1\]", address[1])  # Which no egress proxy reaches.
    opener = urlrequest.build_opener(_AsItIs, *([urlrequest.ProxyHandler({})] if loopback else []))
    for wait_s in (0.25, 0.5, 1, 2, None) if spends else (None,):
        try:
            with opener.open(request, timeout=silence_s) as reply:
                if reply.status >= 300:
                    raise _refusal(_parse(reply.read(), reply.status), reply.status, reply.headers.get("retry-after"))
                yield from read(reply)
                return
        except (OSError, http.client.HTTPException) as cause:
            late = "timed out" in str(cause)
            if late or wait_s is None:
                message = "no answer from the gateway at {}: {}".format(base, cause)
                raise FanoutError(message, "timeout" if late else "unreachable", retryable=True) from cause
        time.sleep(wait_s)

def _parse(data, status=None):
    try:
        answer = json.loads(data.decode("utf-8"))
    except ValueError:
        answer = None
    if not isinstance(answer, dict) or 300 <= (status or 0) < 400:
        raise FanoutError("not a JSON object: {!r}".format(data[:200]), "bad_answer", status, status in (408, 503))
    return answer
def _refusal(answer, status=None, retry_after=None):
    error = answer.get("error") or {"message": "unexpected answer: {!r}".format(answer)[:300], "code": "bad_answer"}
    error = error if isinstance(error, dict) else {"message": error, "code": "tool_error"}
    return FanoutError(error.get("message"), error.get("code"), status, error.get("retryable", status in (408, 503)),
                       float(retry_after) if str(retry_after).isdigit() else None)
