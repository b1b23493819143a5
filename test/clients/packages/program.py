"""A typed program of somebody who has installed the package: mypy reads it, with what each wrong use must say."""

import asyncio
import importlib.metadata
import json
from typing import Any

import fanout_async
from fanout import FanoutError, llm_budget, llm_query_batch, llm_vote, with_run


async def later() -> list[Any]:
    async with fanout_async.with_run(calls=2) as run:
        token: str = run["token"]
        assert token
        return await fanout_async.llm_query_batch(("three", "four"))


def main() -> None:
    answers = llm_query_batch([f"{each}" for each in ("one", "two")], max_tokens=50)
    answers += llm_query_batch(text.lower() for text in ["FIVE"])
    with with_run(calls=1):
        try:
            votes: int = llm_vote("six", n=1)["votes"]
        except FanoutError as error:
            votes = error.attempts or 0
    left: float | None = llm_budget()["calls"]["remaining"]
    version = importlib.metadata.version("fanout-gateway")
    print(json.dumps([answers, asyncio.run(later()), votes, left, version]))


async def wrong() -> None:
    llm_query_batch("one text")  # type: ignore[arg-type]
    llm_budget()["dollars"]  # type: ignore[typeddict-item]
    llm_vote("six", "up/m")  # type: ignore[arg-type]
    await fanout_async.llm_map("text", "{{chunk}}", by="words")  # type: ignore[arg-type]
    with_run(1)  # type: ignore[call-arg]


if __name__ == "__main__":
    main()
