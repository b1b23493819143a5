from collections.abc import AsyncIterator, Coroutine, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal, Protocol, TypedDict, Union
from typing_extensions import TypeAlias

__all__ = [
    "FanoutError",
    "LazyQuery",
    "llm_query",
    "llm_message",
    "llm_query_batch",
    "batch_llm_query",
    "rlm_query",
    "allm_query",
    "llm_query_batched",
    "llm_batch",
    "rlm_query_batched",
    "allm_query_batch",
    "llm_stream",
    "llm_dag",
    "llm_context",
    "llm_map",
    "llm_retry",
    "llm_cancel",
    "llm_vote",
    "with_run",
    "llm_budget",
    "llm_usage",
    "tool_call",
    "llm_log",
    "FINAL",
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

class FanoutError(Exception):
    code: str
    status: int | None
    retryable: bool
    attempts: int | None
    charged_usd: float | None
    def __init__(
        self,
        message: str,
        code: str = "bad_answer",
        status: int | None = None,
        retryable: bool = False,
        attempts: int | None = None,
        charged_usd: float | None = None,
    ) -> None: ...

class LazyQuery(Coroutine[Any, Any, Any]):
    def __init__(self, fields: dict[str, Any]) -> None: ...
    @property
    def is_sent(self) -> bool: ...
    def __await__(self) -> Generator[Any, None, Any]: ...
    def send(self, value: Any) -> Any: ...
    def throw(self, *error: Any) -> Any: ...
    def close(self) -> None: ...

# With `schema`, an answer is the JSON value that fits it, so it may be of any type.
def llm_query(prompt: _Prompt, model: str | None = None, **params: Any) -> LazyQuery: ...
async def llm_message(
    messages_or_prompt: _Prompt,
    model: str | None = None,
    tools: Sequence[dict[str, Any]] | None = None,
    **params: Any,
) -> dict[str, Any]: ...
async def llm_query_batch(
    prompts: _Prompts,
    model: str | None = None,
    tools: Sequence[dict[str, Any]] | None = None,
    **options: Any,
) -> list[Any]: ...
async def batch_llm_query(*queries: _Prompt | LazyQuery) -> list[Any]: ...

rlm_query = llm_query
allm_query = llm_query
llm_query_batched = llm_query_batch
llm_batch = llm_query_batch
rlm_query_batched = llm_query_batch
allm_query_batch = llm_query_batch

def llm_stream(
    prompts: _Prompts, model: str | None = None, **options: Any
) -> AsyncIterator[dict[str, Any]]: ...
async def llm_dag(
    tasks: Iterable[Mapping[str, Any]], **options: Any
) -> dict[str, Any]: ...
async def llm_context(text: str, name: str | None = None) -> str: ...
async def llm_map(
    context: str,
    prompt: str,
    size: int = 8000,
    by: _Split = "chars",
    overlap: int = 0,
    model: str | None = None,
    **options: Any,
) -> list[Any]: ...
async def llm_retry(group: str) -> dict[str, Any]: ...
async def llm_cancel(
    group: str, in_flight: Literal["end", "abort"] = "end", wait_s: float = 0
) -> _Cancellation: ...
async def llm_vote(
    prompt: _Prompt, n: int = 3, model: str | None = None, **options: Any
) -> _Vote: ...
def with_run(**settings: Any) -> AbstractAsyncContextManager[dict[str, Any]]: ...
async def llm_budget() -> _Budget: ...
async def llm_usage(reset: bool = False) -> _Usage: ...
async def tool_call(tool_name: str, **input: Any) -> Any: ...
async def llm_log(event_type: str, **fields: Any) -> None: ...
async def FINAL(x: Any) -> None: ...
