"""Many calls without a gateway: asyncio.gather over OpenAI's own client, with its own retries. Prints one line of JSON."""

import asyncio
import json
import sys
import time

plan = json.loads(sys.argv[1])


async def many(call):
    gate = asyncio.Semaphore(plan["concurrency"])
    counts = {"answered": 0, "refused": 0}

    async def one(number):
        async with gate:
            try:
                await call(number)
                counts["answered"] += 1
            except Exception:  # what was refused is counted
                counts["refused"] += 1

    started = time.perf_counter()
    await asyncio.gather(*(one(number) for number in range(plan["calls"])))
    return {**counts, "wallMs": (time.perf_counter() - started) * 1000}


async def gather():
    from openai import AsyncOpenAI

    client = AsyncOpenAI(base_url=plan["url"], api_key="bench")
    result = await many(
        lambda number: client.chat.completions.create(
            model=plan["model"],
            messages=[{"role": "user", "content": f"Summarise part {number} of the text in one sentence."}],
            max_tokens=plan["maxTokens"],
        )
    )
    await client.close()
    return result


print(json.dumps(asyncio.run(gather())))
