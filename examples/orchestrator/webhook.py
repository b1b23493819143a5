"""The operator's webhook, served by this program: it keeps the events that the gateway has signed.

The gateway's WEBHOOK_URL is `http://127.0.0.1:PORT`, and WEBHOOK_SECRET is the same text here and there. A delivery without a right
signature, or one that is more than five minutes old, gets 401 and is not kept. An event can arrive twice: it is kept once.
"""
import base64
import hashlib
import hmac
import http.server
import json
import threading
import time

OLDEST_S = 300
BODY_BYTES_MAX = 65536


def key_of(secret):
    """The key in a secret: `whsec_` and base64, or any other text as it is."""
    return base64.b64decode(secret[len("whsec_"):]) if secret.startswith("whsec_") else secret.encode()


def is_signed(key, headers, body, now_s):
    """Whether a delivery is the gateway's, by the Standard Webhooks specification."""
    event, sent = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not sent.isdecimal() or abs(now_s - int(sent)) > OLDEST_S:
        return False
    signed = hmac.new(key, "{}.{}.".format(event, sent).encode() + body, hashlib.sha256).digest()
    right = "v1," + base64.b64encode(signed).decode()
    return any(hmac.compare_digest(right, each) for each in headers.get("webhook-signature", "").split())


class Webhook:
    """Receives in a thread of its own from `with` to its end; port 0 takes a free one."""

    def __init__(self, port, secret):
        self.events = {}
        self._arrived = threading.Condition()
        key, webhook = key_of(secret), self

        class Deliveries(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                length = self.headers.get("content-length", "")
                body = self.rfile.read(min(int(length), BODY_BYTES_MAX) if length.isdecimal() else 0)
                is_right = is_signed(key, self.headers, body, time.time())
                if is_right:
                    webhook._keep(json.loads(body))
                self.send_response(204 if is_right else 401)
                self.end_headers()

            def log_message(self, *_):
                """Prints nothing."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Deliveries)
        self.port = self._server.server_port

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()

    def _keep(self, event):
        with self._arrived:
            self.events[event["id"]] = event
            self._arrived.notify_all()

    def wait_for(self, event_id, seconds):
        """The event of that id as soon as it is there; None if it does not arrive in time."""
        with self._arrived:
            self._arrived.wait_for(lambda: event_id in self.events, seconds)
            return self.events.get(event_id)
