"""Anthropic's client: a message batch from its creation to its deletion, and another that is canceled."""

import json
import time

import anthropic

client = anthropic.Anthropic(max_retries=0)
batches = client.messages.batches


def request(custom_id, content):
    params = {"model": "claude-x", "max_tokens": 20, "messages": [{"role": "user", "content": content}]}
    return {"custom_id": custom_id, "params": params}


def ended(batch_id):
    while (batch := batches.retrieve(batch_id)).processing_status != "ended":
        time.sleep(0.1)
    return batch


def shown(result):
    return result.message.content[0].text if result.type == "succeeded" else result.error.error.type


first = batches.create(requests=[request("a", "one"), request("b", "two"), request("bad", "is refused")])
counts = ended(first.id).request_counts
results = {entry.custom_id: shown(entry.result) for entry in batches.results(first.id)}

second = batches.create(requests=[request(f"r{at}", f"prompt {at}") for at in range(200)])
canceling = batches.cancel(second.id)
states = [canceling.processing_status, ended(second.id).processing_status]

listed = len(list(batches.list(limit=1)))
deleted = batches.delete(first.id)
try:
    batches.retrieve(first.id)
    gone = None
except anthropic.NotFoundError as error:
    gone = type(error).__name__

report = {
    "results": results,
    "counts": counts.to_dict(),
    "listed": listed,
    "canceled": states,
    "deleted": deleted.type,
    "gone": gone,
}
print(json.dumps(report))
