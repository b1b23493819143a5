from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol, TypedDict, Union
from typing_extensions import TypeAlias

__all__ = [
    "FanoutError",
    "llm_query",
    "llm_message",
    "llm_query_batch",
    "rlm_query",
    "llm_query_batched",
    "llm_batch",
    "rlm_query_batched",
    "llm_stream",
    "llm_context",
    "llm_map",
    "llm_dag",
    "llm_plan",
    "llm_group",
    "llm_report",
    "llm_retry",
    "llm_cancel",
    "llm_vote",
    "with_run",
    "llm_budget",
    "llm_usage",
    "llm_run",
    "llm_events",
    "llm_worker_token",
    "tool_call",
    "llm_work",
    "llm_log",
    "FINAL",
    "FINAL_VAR",
    "SUBMIT",
]

# A text, a list of chat messages, or a dict of the request's fields.
_Prompt: TypeAlias = Union[str, list[dict[str, Any]], dict[str, Any]]
# Everything with prompts in it but a text: a text is a mistake there, and the function refuses it.
_Prompts: TypeAlias = Union[_Many, Iterator[_Prompt]]
_Split: TypeAlias = Literal["chars", "lines", "paragraphs", "markdown"]

class _Many(Protocol):
    def __iter__(self) -> Iterator[_Prompt]: ...
    def __contains__(self, value: object, /) -> bool: ...

class _BudgetLine(TypedDict):
    limit: float | None
    spent: float
    reserved: float
    remaining: float | None

class _Budget(TypedDict):
    usd: _BudgetLine
    calls: _BudgetLine
    prompt_tokens: _BudgetLine
    completion_tokens: _BudgetLine

class _ModelUsage(TypedDict):
    calls: int
    input_tokens: int
    output_tokens: int
    cost: float

class _Usage(TypedDict):
    llm_calls: int
    input_tokens: int
    output_tokens: int
    cost: float
    calls_by_model: dict[str, _ModelUsage]

class _Vote(TypedDict):
    decided: bool
    winner: Any
    agreement: float
    tie: bool
    votes: int

class _Cancellation(TypedDict):
    groups: int
    ids: list[str]
    running: int
    counts: dict[str, int]
    spent_usd: float
    unknown: list[str]

class _WorkerToken(TypedDict):
    token: str
    run_id: str

class FanoutError(Exception):
    code: str
    status: int | None
    retryable: bool
    retry_after_s: float | None
    attempts: int | None
    charged_usd: float | None
    def __init__(
        self,
        message: str,
        code: str = "unknown",
        status: int | None = None,
        retryable: bool = False,
        retry_after_s: float | None = None,
        attempts: int | None = None,
        charged_usd: float | None = None,
    ) -> None: ...

# With `schema`, an answer is the JSON value that fits it, so it may be of any type.
def llm_query(prompt: _Prompt, model: str | None = None, **params: Any) -> Any: ...
def llm_message(
    messages_or_prompt: _Prompt,
    model: str | None = None,
    tools: Sequence[dict[str, Any]] | None = None,
    **params: Any,
) -> dict[str, Any]: ...
def llm_query_batch(
    prompts: _Prompts,
    model: str | None = None,
    tools: Sequence[dict[str, Any]] | None = None,
    **options: Any,
) -> list[Any]: ...

rlm_query = llm_query
llm_query_batched = llm_query_batch
llm_batch = llm_query_batch
rlm_query_batched = llm_query_batch

def llm_stream(
    prompts: _Prompts, model: str | None = None, **options: Any
) -> Iterator[dict[str, Any]]: ...
def llm_context(text: str, name: str | None = None) -> str: ...
def llm_map(
    context: str,
    prompt: str,
    size: int = 8000,
    by: _Split = "chars",
    overlap: int = 0,
    model: str | None = None,
    **options: Any,
) -> list[Any]: ...
def llm_dag(
    tasks: str | Iterable[Mapping[str, Any]], **options: Any
) -> dict[str, Any]: ...
def llm_plan(goal: str, **options: Any) -> dict[str, Any]: ...
def llm_group(group: str, wait_s: float = 0) -> dict[str, Any]: ...
def llm_report(
    group: str, format: Literal["json", "coordinator", "swarm"] = "json"
) -> dict[str, Any]: ...
def llm_retry(group: str) -> dict[str, Any]: ...
def llm_cancel(
    group: str, in_flight: Literal["end", "abort"] = "end", wait_s: float = 0
) -> _Cancellation: ...
def llm_vote(
    prompt: _Prompt, n: int = 3, model: str | None = None, **options: Any
) -> _Vote: ...
def with_run(**settings: Any) -> AbstractContextManager[dict[str, Any]]: ...
def llm_budget() -> _Budget: ...
def llm_usage(reset: bool = False) -> _Usage: ...
def llm_run() -> dict[str, Any]: ...
def llm_events() -> Iterator[dict[str, Any]]: ...
def llm_worker_token() -> _WorkerToken: ...
def tool_call(tool_name: str, **input: Any) -> Any: ...
def llm_work(
    work: Callable[[dict[str, Any]], Mapping[str, Any]],
    run: str | None = None,
    width: int = 1,
    lease_s: float = 60,
    models: Sequence[str] | None = None,
    until: Callable[[], object] | None = None,
) -> None: ...
def llm_log(event_type: str, **fields: Any) -> None: ...
def FINAL(x: Any) -> None: ...
def FINAL_VAR(name: str) -> None: ...
def SUBMIT(**fields: Any) -> None: ...
