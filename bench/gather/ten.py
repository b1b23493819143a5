"""`ten.py CALLS`: one asyncio.gather over all calls through the stub. Prints what failed, and the time."""
import asyncio
import json
import sys
import time

from fanout_async import llm_query


async def main():
    started = time.monotonic()
    calls = [llm_query("gathered {}".format(each)) for each in range(int(sys.argv[1]))]
    ends = await asyncio.gather(*calls, return_exceptions=True)
    failed = [str(end) for end in ends if isinstance(end, BaseException)]
    print(json.dumps({"failed": failed, "wallMs": (time.monotonic() - started) * 1000}))


asyncio.run(main())
