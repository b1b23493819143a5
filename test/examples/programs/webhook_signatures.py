"""Sends deliveries to the receiver of examples/orchestrator, right ones and forged ones: `webhook_signatures.py PROGRAM_FOLDER`."""
import base64
import hashlib
import hmac
import json
import sys
import time
import urllib.error
import urllib.request

sys.path.insert(0, sys.argv[1])
from webhook import Webhook  # noqa: E402

KEY = b"a secret of the operator"
NOW_S = int(time.time())


def delivery(port, event, key=KEY, sent_s=NOW_S, changed=b"", signs=True):
    """The status of one delivery of an event."""
    body = json.dumps({"id": event}).encode()
    signed = hmac.new(key, "{}.{}.".format(event, sent_s).encode() + body, hashlib.sha256).digest()
    headers = {"webhook-id": event, "webhook-timestamp": str(sent_s)}
    if signs:
        headers["webhook-signature"] = "v1,other v1," + base64.b64encode(signed).decode()
    request = urllib.request.Request("http://127.0.0.1:{}/".format(port), body + changed, headers)
    try:
        return urllib.request.urlopen(request, timeout=60).status
    except urllib.error.HTTPError as refused:
        return refused.code


with Webhook(0, "whsec_" + base64.b64encode(KEY).decode()) as webhook:
    statuses = [
        delivery(webhook.port, "evt_right"),
        delivery(webhook.port, "evt_right"),
        delivery(webhook.port, "evt_other_key", key=b"another secret"),
        delivery(webhook.port, "evt_changed", changed=b" "),
        delivery(webhook.port, "evt_old", sent_s=NOW_S - 3600),
        delivery(webhook.port, "evt_unsigned", signs=False),
    ]
    print(*statuses)
    print(*webhook.events)
