"""Threads that each send calls of their own through the stub: threads.py CALLS THREADS. Prints what failed, and the time."""

import json
import sys
import threading
import time

from fanout import FanoutError, llm_query

calls, width = int(sys.argv[1]), int(sys.argv[2])
failed = []


def work(first):
    for each in range(first, calls, width):
        try:
            llm_query(f"thread call {each}")
        except FanoutError as error:
            failed.append(str(error))


threads = [threading.Thread(target=work, args=(first,)) for first in range(width)]
started = time.monotonic()
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(json.dumps({"failed": failed, "wallMs": (time.monotonic() - started) * 1000}))
