"""Ask a fanout gateway from Python in WebAssembly: Pyodide in a page, a worker, Deno or Node. One file, no packages.

    from fanout_pyodide import configure, llm_query_batch, llm_query_sync
    configure("https://fanout.example.com", token)
    answers = await llm_query_batch(["Summarise: " + page for page in pages], max_tokens=200)
    answer = llm_query_sync("What is 2 + 2?")  # Blocks, in a worker. Each function but llm_stream has its `_sync`.

Without configure(), FANOUT_URL (default http://127.0.0.1:8787) names the gateway, FANOUT_TOKEN carries the run token;
GATEWAY_URL and GATEWAY_TOKEN stand in for them. FANOUT_TIMEOUT_S (660) is the longest silence that a call bears; of a
`_sync`, the longest call. A keyword argument is sent as the request field of that name; `idempotency_key` names the
request, so that a restarted program finds its answers. A lost connection is asked again under the same key.
"""
import asyncio, contextlib, contextvars, js, json, os, re, time
from pyodide.ffi import JsException, to_js

class FanoutError(Exception):
    """`code`: one of the gateway's, or no_token, bad_url, unreachable, timeout, bad_answer, tool_error, no_worker."""
    def __init__(self, message, code="bad_answer", status=None, retryable=False):
        super().__init__(message)
        self.code, self.status, self.retryable = code, status, retryable
def configure(url, token):  # A page has no environment.
    os.environ.update(FANOUT_URL=url, FANOUT_TOKEN=token)
async def llm_query(prompt, model=None, **params):
    """The answer to one prompt (a string, or a list of chat messages). Raises FanoutError when the call fails."""
    asked = {"messages" if isinstance(prompt, list) else "prompt": prompt, **({"model": model} if model else {})}
    return await _ask("/query", {**asked, **params}, "text")
async def llm_query_batch(prompts, model=None, **options):
    """The answers to many prompts, by one request, in their order; "[error] message" in the place of a failed one."""
    slots = [event async for event in llm_stream(prompts, model, **options) if event["type"] == "slot"]
    return [slot["result"] for slot in sorted(slots, key=lambda slot: slot["index"])]
async def llm_stream(prompts, model=None, **options):
    """Yields a dict per slot as it ends (`"type": "slot"`, `index`, `result`, `error`), `"group_completed"` last."""
    if isinstance(prompts, (str, bytes, dict)):  # A string is a sequence too: each letter would become a paid call.
        raise TypeError("prompts must be a list of prompts, not one " + type(prompts).__name__)
    prompts, named = list(prompts), {"model": model} if model else {}
    asked = {"prompts" if all(isinstance(prompt, str) for prompt in prompts) else "items": prompts}
    if prompts:
        async for event in _exchange("/batch", {**asked, **named, **options}, last="group_completed"):
            yield event
async def llm_budget():  # What is left: `usd`, `calls`, …, each with `limit`, `spent`, `reserved`, `remaining`.
    return await _ask("/budget")
async def llm_usage(reset=False):  # Since the last reset: `llm_calls`, `input_tokens`, `output_tokens`, `cost`, …
    return await _ask("/usage?reset=1" if reset else "/usage")
async def tool_call(tool_name, **input):  # What the run's tool answers. Asked once: it may do something each time.
    return await _ask("/tool_call", {"tool_name": tool_name, "input": input}, "result")
async def llm_log(event_type, **fields):  # code, output, hasError, reasoning, usage, timestamps, step, data
    await _ask("/log", {"event_type": event_type, **fields}, "appended")
async def FINAL(x):  # Leaves the program's result, any JSON value, in the run's log.
    await llm_log("final_result", output=x if isinstance(x, str) else json.dumps(x), data=x)

async def _fetched(url, request, silence_s):
    controller = js.AbortController.new()
    async def patient(promise):
        timer = js.setTimeout(controller.abort.bind(controller), silence_s * 1000)
        try:
            return await promise
        except JsException as cause:
            raise (TimeoutError if controller.signal.aborted else ConnectionError)(str(cause)) from cause
        finally:
            js.clearTimeout(timer)
    try:  # A redirect followed would carry the token to another host.
        options = {**request, "redirect": "manual", "signal": controller.signal}
        reply = await patient(js.fetch(url, to_js(options, dict_converter=js.Object.fromEntries)))
        yield 302 if reply.type == "opaqueredirect" else reply.status, b""
        reader = reply.body and reply.body.getReader()
        while reader and not (part := await patient(reader.read())).done:
            yield reply.status, part.value.to_bytes()
    finally:
        controller.abort()
async def _blocked(url, request, silence_s):
    if hasattr(js, "document") or not hasattr(js, "XMLHttpRequest"):
        raise FanoutError("only a browser's worker may block: await the function without _sync", "no_worker")
    xhr = js.XMLHttpRequest.new()
    xhr.open(request["method"], url, False)
    xhr.timeout = silence_s * 1000
    for header in request["headers"].items():
        xhr.setRequestHeader(*header)
    try:
        xhr.send(request.get("body"))
    except JsException as cause:
        raise (TimeoutError if cause.name == "TimeoutError" else ConnectionError)(str(cause)) from cause
    yield xhr.status if xhr.responseURL == js.URL.new(url).href else 302, xhr.responseText.encode("utf-8")
_send = contextvars.ContextVar("send", default=_fetched)
def _blocking(function):
    def blocking(*args, **options):
        before = _send.set(_blocked)
        try:
            function(*args, **options).send(None)  # Nothing in it waits now, so that one step is all of it.
        except StopIteration as end:
            return end.value
        finally:
            _send.reset(before)
    return blocking
llm_query_sync, llm_query_batch_sync, llm_budget_sync = map(_blocking, (llm_query, llm_query_batch, llm_budget))
llm_usage_sync, tool_call_sync, llm_log_sync, FINAL_sync = map(_blocking, (llm_usage, tool_call, llm_log, FINAL))
llm_query_batched = llm_batch = llm_query_batch
async def _ask(path, body=None, field=None):
    (answer,) = [answer async for answer in _exchange(path, body)]
    if field not in (None, *answer):
        raise _refusal(answer)
    return answer[field] if field else answer
async def _exchange(path, body=None, last=None):  # Yields the answer, or the events of a stream up to `last`.
    base, token = ((os.environ.get("FANOUT_" + name) or os.environ.get("GATEWAY_" + name) or "").strip()
                   for name in ("URL", "TOKEN"))
    base, given, send = base.rstrip("/") or "http://127.0.0.1:8787", set(), _send.get()
    if not token:
        raise FanoutError("there is no token: configure() takes the one that POST /runs answers with", "no_token")
    if not re.fullmatch(r"https?://[^\s/@]+(/\S*)?", base, re.I):
        raise FanoutError(f"the gateway's address must begin with http:// or https://, not {base!r}", "bad_url")
    body = {"idempotency_key": os.urandom(16).hex(), **(body or {})}
    headers = {"authorization": "Bearer " + token, "accept": "application/x-ndjson" if last else "application/json",
               "content-type": "application/json", "idempotency-key": body.pop("idempotency_key")}
    request = {"headers": headers, **({"method": "POST", "body": json.dumps(body)} if body else {"method": "GET"})}
    silence_s = float(os.environ.get("FANOUT_TIMEOUT_S") or 660)
    for wait_s in (0.25, 0.5, 1, 2, None) if path in ("/query", "/batch") else (None,):
        try:
            async for status, text in _texts(send(base + path, request, silence_s), last):
                answer = _parse(text, status)
                name = answer.get("index", answer.get("type"))
                if status >= 300 or name == "error" or answer.get("error") and name is None:
                    raise _refusal(answer, None if status == 200 else status)
                if name not in given:  # Else it came over a connection that was lost since.
                    given.add(name)
                    yield answer
            if last in (None, *given):
                return
            raise ConnectionError("the answer ended before its last line")
        except OSError as cause:
            code = "timeout" if isinstance(cause, TimeoutError) else "unreachable"
            if wait_s is None or code == "timeout":
                raise FanoutError(f"no answer from the gateway at {base}: {cause}", code, retryable=True) from cause
        time.sleep(wait_s) if send is _blocked else await asyncio.sleep(wait_s)
async def _texts(pieces, by_line):  # Yields an answer's status with its body, or each line of a stream.
    rest = b""
    async for status, piece in pieces:
        *lines, rest = (rest + piece).split(b"\n") if by_line and status == 200 else [rest + piece]
        for line in filter(bytes.strip, lines):
            yield status, line
    if rest.strip() or not by_line or status != 200:
        yield status, rest
def _parse(text, status):
    with contextlib.suppress(ValueError):
        answer = json.loads(text)
        if isinstance(answer, dict) and not 300 <= status < 400:
            return answer
    raise FanoutError(f"not a JSON object: {text[:200]!r}", "bad_answer", status, status in (408, 503))
def _refusal(answer, status=None):
    error = answer.get("error") or {"message": f"unexpected answer: {answer!r}"[:300], "code": "bad_answer"}
    error = error if isinstance(error, dict) else {"message": error, "code": "tool_error"}
    return FanoutError(error.get("message"), error.get("code"), status, error.get("retryable", status in (408, 503)))
