"""A client of the old systems, as their users wrote them: HBox's REST, PAI's and Slider's, by the standard library alone.

client.py LINK APP: LINK is what muster ui has printed. Prints one JSON object of what it was answered.
"""
import json
import sys
import urllib.error
import urllib.request
from http.cookiejar import CookieJar
from urllib.parse import urlsplit

link, app = sys.argv[1], sys.argv[2]
base = "http://" + urlsplit(link).netloc
opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
opener.open(link, timeout=30)


def ask(path, method="GET", body=None):
    request = urllib.request.Request(base + path, method=method)
    if body is not None:
        request.data = json.dumps(body).encode()
        request.add_header("Content-Type", "application/json")
        request.add_header("Origin", base)
    try:
        with opener.open(request, timeout=60) as answer:
            text, kind, code = answer.read().decode(), answer.headers.get_content_type(), answer.status
    except urllib.error.HTTPError as error:
        text, kind, code = error.read().decode(), error.headers.get_content_type(), error.code
    if kind == "application/json":
        return [code, json.loads(text)]
    return [code, text]


ws = "/proxy/" + app + "/ws"
found = {"app": ask(ws + "/app"), "containers": ask(ws + "/containers")}
worker = found["containers"][1]["containerInfos"][-1]["cid"]
found["container"] = ask(ws + "/containers/" + worker)
found["stdout"] = ask(ws + "/containers/" + worker + "/stdout")
found["nothing"] = ask(ws + "/containers/" + worker + "/other")
found["evaluator"] = ask(ws + "/app/evaluator")
found["boardUrl"] = ask(ws + "/app/boardUrl")
found["signal"] = ask(ws + "/app/signal/10")
found["signal_failed"] = ask(ws + "/app/signal/no")
found["savemodel"] = ask(ws + "/app/savemodel")
found["exports"] = ask(ws + "/v1/slider/publisher/exports")
found["ps"] = ask(ws + "/v1/slider/publisher/exports/ps")
found["live"] = ask(ws + "/v1/slider/application/live/components")
found["jobs"] = ask("/api/v1/jobs")
found["job"] = ask("/api/v1/jobs/" + app)
found["config"] = ask("/api/v1/jobs/" + app + "/config")
found["ssh"] = ask("/api/v1/jobs/" + app + "/ssh")
found["no_job"] = ask("/api/v1/jobs/other")
found["submit"] = ask("/api/v1/jobs", "POST", {"jobName": "x"})
found["start"] = ask("/api/v1/jobs/" + app + "/executionType", "PUT", {"value": "START"})
found["stop"] = ask("/api/v1/jobs/" + app + "/executionType", "PUT", {"value": "STOP"})
print(json.dumps(found))
