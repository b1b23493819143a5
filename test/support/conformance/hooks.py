"""Hooks of schemathesis: who sends each request, and things that exist.

Most of what it makes up names nothing: half of the requests get the id of a real thing instead, so that the schemas
of successful answers are examined too. FANOUT_PLACE has the gateway, its credentials and these things, as place.ts writes.
"""

import atexit
import json
import os
import re
import sys
import zlib

import requests
import schemathesis

PLACE = json.loads(os.environ["FANOUT_PLACE"])
URL, OPERATOR, TOKEN = PLACE["url"], PLACE["operator"], PLACE["token"]
THINGS = PLACE["things"]

# The operator's own routes, and the one on which a run would open child runs in a budget that ends.
OPERATORS = (
    "GET /runs",
    "POST /runs",
    "PATCH /runs/{id}",
    "GET /metrics",
    "GET /upstreams",
    "POST /upstreams/{name}/resume",
    "GET /cassettes",
    "GET /cassettes/{tape}",
    "GET /cassettes/{tape}/exchanges",
    "PUT /cassettes/{tape}",
    "DELETE /cassettes/{tape}",
)

# What these take from a thing, such as its time, they take for ever: each request gets one of its own.
ENDING = ("POST /runs/{id}/close", "DELETE /runs/{id}", "PATCH /runs/{id}")

# A request waits this long at most, ms: most of what it waits for never comes.
WAIT_MS_MAX = 20


def chance(case, salt: str) -> bool:
    """A coin that falls the same way for the same request."""
    body = repr(getattr(case, "body", None))[:2000]
    return zlib.crc32(f"{salt} {case.path_parameters} {case.query} {body}".encode()) % 2 == 0


def is_positive(case) -> bool:
    return case.meta is not None and case.meta.generation.mode.is_positive


def fresh_run() -> str:
    headers = {"authorization": f"Bearer {OPERATOR}"}
    return requests.post(f"{URL}/runs", json={"budget": {"calls": 1}}, headers=headers, timeout=30).json()["id"]


MODELS = ("model", "default_model", "planner_model")


def with_real_names(value, name=None):
    """The value, with models and contexts that exist in place of those that it names, however deep."""
    if isinstance(value, dict):
        return {key: with_real_names(inner, key) for key, inner in value.items()}
    if isinstance(value, list):
        models = name == "models" and all(isinstance(inner, str) for inner in value)
        return ["sim/echo" for _ in value] if models else [with_real_names(inner, name) for inner in value]
    if isinstance(value, str) and name in MODELS:
        return "sim/echo"
    if isinstance(value, str) and value.startswith("ctx_") and name in ("context", "id"):
        return THINGS["/contexts"][0]
    return value


@schemathesis.hook
def before_call(context, case, kwargs):
    name = f"{case.method} {case.path}"
    case.headers["authorization"] = f"Bearer {OPERATOR if name in OPERATORS + ENDING else TOKEN}"
    if not is_positive(case):
        return
    if "id" in case.path_parameters and chance(case, "id"):
        things = THINGS.get(name) or THINGS.get(case.path.split("/{id}")[0])
        if name in ENDING:
            case.path_parameters["id"] = fresh_run()
        elif things:
            case.path_parameters["id"] = things[zlib.crc32(repr(case.query).encode()) % len(things)]
    for parameter in ("lang", "tape", "index"):
        if parameter in case.path_parameters and chance(case, parameter):
            case.path_parameters[parameter] = THINGS[parameter][0]
    if isinstance(case.query, dict) and "wait_ms" in case.query:
        case.query["wait_ms"] = min(int(case.query["wait_ms"]), WAIT_MS_MAX)
    if isinstance(case.body, dict):
        if isinstance(case.body.get("wait_ms"), int):
            case.body["wait_ms"] = min(case.body["wait_ms"], WAIT_MS_MAX)
        if chance(case, "model"):
            case.body = with_real_names(case.body)


# Operations with a successful answer, whose schema was examined, and those with another one only.
answered: dict[str, bool] = {}


@schemathesis.hook
def after_call(context, case, response):
    # Some requests try another method of the path.
    name = f"{case.operation.method.upper()} {case.path}"
    answered[name] = answered.get(name, False) or (case.method == case.operation.method.upper() and response.status_code < 400)


@atexit.register
def print_never_accepted():
    never = sorted(name for name, accepted in answered.items() if not accepted)
    print(f"Operations of which no request succeeded: {', '.join(never) or 'none'}", file=sys.stderr)


# Why the gateway refuses requests that fit their schema: rules that no schema of one field says, each with the whole message
# that names it. Any other refusal is an omission of the document.
FIELD = r"[a-z_0-9.\[\]]+"
RULES = (
    ("an identifier is one that the gateway gave", r"cursor: expected the next_cursor of an earlier page"),
    ("an identifier is one that the gateway gave", r"Invalid '(after|before)': no item with id '.*' in this list[.]"),
    ("an identifier is one that the gateway gave", r"Invalid 'part_ids': this upload has no part '.*'[.]"),
    ("the bytes are as many as an earlier request named", r"The parts have \d+ bytes in total; this upload was created with \d+[.]"),
    ("the bytes are text", r"(file_id is not UTF-8; expected text in UTF-8|Invalid file for Batch API[.] Must be utf-8 encoded)"),
    ("a range is of the bytes that there are", r"The range is outside the file, which has \d+ bytes[.]"),
    ("a chunk is one that there is", rf"{FIELD}:? is \d+, but .* has \d+ chunks?, counted from 0"),
    ("a range is of the characters that there are", rf"{FIELD}: is \d+, but ctx_[0-9a-f]+ has \d+ characters?"),
    ("a field is less than another", rf"{FIELD}: is \d+, behind the end of the range \(\d+\)"),
    ("an address is a URL of a public host", r"tools\[\d+\][.]url: expected an http:// or https:// address"),
    ("an address is a URL of a public host", r"tools\[\d+\][.]url: has a (private, local|host).*; expected a public host, .*"),
    ("an address is a URL of a public host", r"tools\[\d+\][.]url: contains a user name or password; .*"),
    ("most bytes depend on the purpose", r"File is too large[.]"),
    ("two fields of a form come together", r"Missing required parameter: 'expires_after[.](anchor|seconds)'[.]"),
    ("two fields exclude or need each other", rf"({FIELD}[.])?models: give either model or models, not both"),
    ("two fields exclude or need each other", rf"{FIELD} needs models"),
    ("two fields exclude or need each other", rf"{FIELD} is the same as {FIELD}; send one of them"),
    ("two fields exclude or need each other", rf'{FIELD} is for (".*": ".*"|regex) only(;.*|, .*)?'),
    ("two fields exclude or need each other", rf"{FIELD} cannot be combined with models: .*"),
    ("two fields exclude or need each other", rf"{FIELD} cannot be combined with params[.]\w+; send one of them"),
    ("two fields exclude or need each other", rf'{FIELD}: with service_tier "batch", expected at least \d+ \(an hour\)'),
    ("two fields exclude or need each other", rf'{FIELD}:? ("strict" )?cannot be combined with service_tier "batch"'),
    ("a field needs a header", r'service_tier: "batch" requires the header "Prefer: respond-async", .*'),
    ("a name is one that the request defines, once", rf'({FIELD}: (no task has the id ".*"|task ".*" depends on itself)(; )?)+'),
    ("names have characters, and not too many", rf"{FIELD}.*: Invalid key in record"),
    ("names are unique in a list", rf"{FIELD} is the name of another tool in this list; expected unique names"),
    ("JSON is not an empty body", r"the body is empty; expected a JSON object"),
    ("only of a run with a parent", r"idempotency-key: only child runs take one; a root run reserves nothing in a parent"),
    ("only of a run with a parent", r"wait_ms: only a child run waits for room; a root run has no parent"),
    ("a child ends with its parent", r"expires_in_s: the parent run expires at [\d:.TZ-]+, and a child run with it; extend the parent first"),
    ("only of a batch that runs", r"Cannot cancel a batch with status '\w+'[.]"),
    ("a field is less than another", rf"{FIELD}[.]overlap: expected less than size"),
    ("a field is less than another", rf"{FIELD}[.]max: expected at least min \(\d+\)"),
    ("values nest only so deep", rf"{FIELD}: expected at most \d+ levels of nesting"),
    ("a condition is a comparison", rf"{FIELD}: expected a condition such as .*"),
    ("a condition is a comparison", rf"{FIELD}: expected at most one condition"),
    ("a pattern is a regular expression", rf"{FIELD}[.]regex: .*"),
    ("text is well-formed Unicode without NUL", r".*contains a (NUL character( at index \d+)?; .*|lone surrogate .*)"),
    ("only of an upload that is pending", r"Cannot (add a part to|complete|cancel) an upload with status '\w+'[.]"),
    ("only of a run without a parent", r"models: only of a root run; a child run has its parent's models, .*"),
    ("the upstream's own, whose reference has it", r"input must be a string or an array of items"),
    ("the upstream's own, whose reference has it", r"(n|dimensions) must be a whole number from 1 to \d+"),
    ("only of a group of several calls", r"a single call cannot be retried as a group; .*"),
    ("only of a graph that runs", r"the graph has ended or is stopping; it cannot be changed"),
)

# The same of bodies that are text, whose schema has no fields.
RULES_OF_TEXT = (
    ("text is not blank", r"the body:? is empty; expected .*"),
    ("lines are tasks", r"tasks: expected array to have >=1 items"),
    ("lines are tasks", r"tasks\[\d+\]: expected object, received \w+"),
    ("lines are exchanges of a tape", r"line \d+(:| is not JSON[:;]) .*"),
    ("lines are a plan", r"the body is no plan: line \d+ ((the body: )?expected .*|is not JSON; .*)"),
    ("lines are a plan", r"tasks: the plan has no task"),
)


def rule_of(message: str, media_type: str | None) -> str | None:
    """The rule that refused a request which fits its schema; None = the document should have said it."""
    rules = RULES if media_type == "application/json" else RULES + RULES_OF_TEXT
    return next((rule for rule, pattern in rules if re.fullmatch(pattern, message, re.DOTALL)), None)


@schemathesis.serializer("application/x-ndjson")
def lines(context, value):
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")


@schemathesis.check
def documented_success(context, response, case):
    """`default` describes refusals: the statuses of success are documented one by one."""
    documented = case.operation.definition.raw["responses"]
    if response.status_code < 400 and str(response.status_code) not in documented:
        raise AssertionError(f"{response.status_code} is documented only as `default`")


@schemathesis.hook
def filter_failure(context, failure, case, response):
    if f"{case.method} {case.path}" == "POST /contexts" and "parameter `name` in query" in failure.message:
        # Only a body that is the text itself has its name there; a JSON body has its own.
        return case.media_type != "application/json"
    # It calls a form wrong of which it says that it has all that is required, and a valid value.
    if failure.code == "ST201" and re.search(r"Invalid component: in body - (valid object|object with (valid |only required properties))", failure.message):
        return False
    if failure.code != "ST202":
        return True
    try:
        error = response.json()["error"]
    except ValueError:
        return True
    message = error if isinstance(error, str) else error["message"]
    return rule_of(message, case.media_type) is None
