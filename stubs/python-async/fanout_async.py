"""Ask a fanout gateway from asyncio, Python 3.8 or newer. One file, standard library only: copy it into the sandbox.

    answers = await asyncio.gather(*[llm_query("Summarise: " + page) for page in pages])
    answers = await llm_query_batch(["Summarise: " + page for page in pages], max_tokens=200)

FANOUT_URL names the gateway (default http://127.0.0.1:8787), FANOUT_TOKEN carries the run token; GATEWAY_URL and
GATEWAY_TOKEN stand in for them. FANOUT_TIMEOUT_S (660) is the longest silence that a call bears. A keyword argument is
sent as the request field of that name; `idempotency_key` names the request, so that a restarted program finds its
answers. A lost connection is asked again under the same key. A cancelled task closes its own. Proxies are not used.
"""
import asyncio, collections.abc, contextlib, functools, json, os, re, socket, weakref

class FanoutError(Exception):
    """`code`: one of the gateway's, or no_token, bad_url, unreachable, timeout, bad_answer, tool_error."""
    def __init__(self, message, code="bad_answer", status=None, retryable=False):
        super().__init__(message)
        self.code, self.status, self.retryable = code, status, retryable

class LazyQuery(collections.abc.Coroutine):
    """A call that is sent when it is first awaited or made a task; every further await gives the same answer."""
    turns = weakref.WeakKeyDictionary()  # By event loop: 256 calls at once, each a connection, and thus an open file.
    def __init__(self, body):
        self.body, self.asked, self._steps = body, None, weakref.WeakKeyDictionary()
    def __await__(self):
        if self.asked is None or self.asked.cancelled():
            self.asked = asyncio.ensure_future(_ask("/query", self.body, "text"))
        return (yield from self.asked)
    def send(self, value):  # A task drives a coroutine by send and throw; each task has steps of its own.
        return self._steps.setdefault(asyncio.current_task(), self.__await__()).send(value)
    def throw(self, *error):
        return self._steps.setdefault(asyncio.current_task(), self.__await__()).throw(*error)

def llm_query(prompt, model=None, **params):
    """To be awaited: the answer to one prompt (a string, or a list of chat messages). Raises FanoutError."""
    named = {} if model is None else {"model": model}
    return LazyQuery({"messages" if isinstance(prompt, list) else "prompt": prompt, **named, **params})
async def llm_query_batch(prompts, model=None, **options):
    """The answers to many prompts, by one request, in their order; "[error] message" in the place of a failed one."""
    slots = [event async for event in llm_stream(prompts, model, **options) if event["type"] == "slot"]
    return [slot["result"] for slot in sorted(slots, key=lambda slot: slot["index"])]
async def batch_llm_query(*queries):
    """llm_query_batch for strings and `llm_query(…)`s: one request for all of these that nobody has awaited yet."""
    queries = [query if isinstance(query, LazyQuery) else llm_query(query) for query in queries]
    fresh = [query for query in dict.fromkeys(queries) if query.asked is None or query.asked.cancelled()]
    batch = asyncio.ensure_future(llm_query_batch([query.body for query in fresh], error_style="settled"))
    async def one(index):
        end = (await batch)[index]
        if "value" not in end:
            raise _refusal({"error": end["reason"]}, end["reason"].get("status"))
        return end["value"]
    for index, query in enumerate(fresh):
        query.asked = asyncio.ensure_future(one(index))
    ends = await asyncio.gather(*[query.asked for query in queries], return_exceptions=True)
    await batch  # Raises where the request failed as a whole.
    return [f"[error] {end}" if isinstance(end, FanoutError) else end for end in ends]
rlm_query = allm_query = llm_query  # The names that other systems use.
llm_query_batched = llm_batch = rlm_query_batched = allm_query_batch = llm_query_batch

async def llm_stream(prompts, model=None, **options):
    """Yields a dict per slot as it ends (`"type": "slot"`, `index`, `result`, `error`), `"group_completed"` last."""
    if isinstance(prompts, (str, bytes, dict)):  # A string is a sequence too: each letter would become a paid call.
        raise TypeError("prompts must be a list of prompts, not one " + type(prompts).__name__)
    prompts, named = list(prompts), {} if model is None else {"model": model}
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

async def _ask(path, body=None, field=None):
    async with LazyQuery.turns.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(256)):
        (answer,) = [answer async for answer in _exchange(path, body)]
    if field not in (None, *answer):
        raise _refusal(answer)
    return answer[field] if field else answer
async def _exchange(path, body=None, last=None):  # Yields the answer, or the events of a stream up to `last`.
    base, token = ((os.environ.get("FANOUT_" + name) or os.environ.get("GATEWAY_" + name) or "").strip()
                   for name in ("URL", "TOKEN"))
    base, given, kind = base.rstrip("/") or "http://127.0.0.1:8787", set(), "x-ndjson" if last else "json"
    url = re.fullmatch(r"(https?)://([\w.-]+|\[[\da-f:.]+\])(:\d+)?(/[!-~]*)?", base, re.I | re.A)
    if not token:
        raise FanoutError("FANOUT_TOKEN is not set: it carries the token that POST /runs answers with", "no_token")
    if not url:
        raise FanoutError(f"FANOUT_URL must be an http:// or https:// address, not {base!r}", "bad_url")
    body, tls = {"idempotency_key": os.urandom(16).hex(), **(body or {})}, url[1].lower() == "https"
    key, data = body.pop("idempotency_key"), json.dumps(body) if body else ""
    host, port = url[2].strip("[]"), url[3] or (":443" if tls else ":80")
    head = [f"{'POST' if body else 'GET'} {url[4] or ''}{path} HTTP/1.1", f"host: {url[2]}{url[3] or ''}",
            f"authorization: Bearer {token}", f"accept: application/{kind}", "connection: close",
            "content-type: application/json", f"content-length: {len(data)}", f"idempotency-key: {key}", "", data]
    if re.search(r"[^ -\x7f]", "".join(head)):
        raise ValueError("a token and an idempotency key are visible ASCII characters")
    patience_s = float(os.environ.get("FANOUT_TIMEOUT_S") or 660 + (body.get("timeout_ms") or 0) / 1000)
    patient = functools.partial(asyncio.wait_for, timeout=patience_s)
    for wait_s in (0.25, 0.5, 1, 2, None) if path in ("/query", "/batch") else (None,):
        try:
            reader, writer = await patient(asyncio.open_connection(host, port[1:], ssl=tls or None))
            with contextlib.closing(writer):  # By a reset: it is what a gateway without Cloudflare before it notices.
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                writer.write("\r\n".join(head).encode("ascii"))
                async for status, text in _texts(reader, last, patient):
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
        except (OSError, EOFError, ValueError, asyncio.TimeoutError) as cause:
            code = "timeout" if isinstance(cause, asyncio.TimeoutError) else "unreachable"
            if wait_s is None or code == "timeout":
                raise FanoutError(f"no answer from the gateway at {base}: {cause!r}", code, retryable=True) from cause
        await asyncio.sleep(wait_s)
async def _texts(reader, by_line, patient):  # Yields an answer's status with its body, or each line of a stream.
    top = await patient(reader.readuntil(b"\r\n\r\n"))
    headers = dict(re.findall(rb"\n([a-z-]+): *([^\r]*)", top.lower()))
    status, chunked, size, rest = int(top[9:12]), b"chunked" in headers.get(b"transfer-encoding", b""), 1, b""
    while size:
        size = int(await patient(reader.readline()), 16) if chunked else 0
        exact = size + 2 if chunked else int(headers.get(b"content-length", -1))
        piece = await patient(reader.read() if exact < 0 else reader.readexactly(exact))
        whole = rest + (piece[:size] if chunked else piece)
        *lines, rest = whole.split(b"\n") if by_line and status == 200 else [whole]
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
