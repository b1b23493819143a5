"""Two gathers at once through the asynchronous stub, of half of the calls each. Prints what failed, and the time."""

import asyncio
import json
import sys
import time

from fanout_async import llm_query

half = int(sys.argv[1]) // 2


async def gather(name):
    calls = (llm_query(f"{name} call {each}") for each in range(half))
    return await asyncio.gather(*calls, return_exceptions=True)


async def main():
    started = time.monotonic()
    answers = await asyncio.gather(gather("one"), gather("two"))
    failed = [str(answer) for part in answers for answer in part if isinstance(answer, Exception)]
    print(json.dumps({"failed": failed, "wallMs": (time.monotonic() - started) * 1000}))


asyncio.run(main())
