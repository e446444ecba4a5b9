"""Words to talk about documents with a server."""

import base64
import http.client
import json
from urllib.parse import quote

DOCUMENTS, LOCKS, RELEASE = "/v1/documents", "/v1/locks", "/v1/grants/release"
BYTES_MAX = 4 << 20
KEYS = ["...", "/", "a b", "a/1", "a/2", "a//", "history", "k" * 255, "raw", "x?y=%2F&z#", "ü€", "🙂"]
JSON = {"Content-Type": "application/json"}


def of(key: str, rest="", namespace="") -> str:
    """The path of a document."""
    base = f"/v1/namespaces/{namespace}/documents" if namespace else DOCUMENTS
    return f"{base}/{quote(key, safe='')}{rest}"


def put(server, key: str, content="", **fields) -> dict:
    return server.call("PUT", of(key), {"content": content, **fields})


def get(server, key: str, rest="") -> dict:
    return server.call("GET", of(key, rest))


def delete(server, key: str, query="") -> dict:
    return server.call("DELETE", of(key, query))


def error(server, method: str, path: str, body=None, headers=None) -> dict:
    """Error of a call that must not succeed, with its status."""
    data = None if body is None else json.dumps(body).encode()
    status, answer = server.request(method, path, data, {**JSON, **(headers or {})})
    assert status >= 400, answer
    return {"status": status, **json.loads(answer)["error"]}


def told(server, key: str, **body) -> tuple[int, str]:
    """Status and code of a write that must not succeed."""
    refused = error(server, "PUT", of(key), {"content": "never", **body})
    return refused["status"], refused["code"]


def is_gone(server, key: str) -> bool:
    refused = [error(server, "GET", of(key, rest)) for rest in ("", "/raw", "/history")]
    refused.append(error(server, "DELETE", of(key)))
    return all((one["status"], one["code"]) == (404, "document_not_found") for one in refused)


def listed(server, query="", headers=None) -> list[str]:
    return [one["key"] for one in server.call("GET", f"{DOCUMENTS}{query}", None, headers)["documents"]]


def versions(server, key: str) -> list[int]:
    return [one["version"] for one in get(server, key, "/history")["versions"]]


def acquire(server, key: str, **fields) -> str:
    """The token of a lock."""
    return server.call("POST", LOCKS, {"key": key, **fields})["token"]


def release(server, token: str):
    server.call("POST", RELEASE, {"token": token})


def grow(etags: list[str]) -> bool:
    """True if each is larger than all before it."""
    numbers = [int(etag) for etag in etags]
    return numbers == sorted(set(numbers))


class Raw:
    """An answer of the route whose body is the content."""

    def __init__(self, server, method: str, key: str, content=None, rest="/raw", **headers):
        connection = http.client.HTTPConnection(server.url.split("://")[1], timeout=20)
        connection.putrequest(method, of(key, rest))
        for name, values in headers.items():
            for value in values if isinstance(values, list) else [values]:
                connection.putheader(name.replace("_", "-"), value if isinstance(value, bytes) else value.encode())
        if content is not None:
            connection.putheader("Content-Length", str(len(content)))
        connection.endheaders(content)
        answer = connection.getresponse()
        self.status, self.headers, self.body = answer.status, answer.headers, answer.read()
        connection.close()

    @property
    def etag(self) -> str:
        return self.headers["ETag"]

    @property
    def error(self) -> tuple[int, str]:
        return self.status, json.loads(self.body)["error"]["code"]

    def attributes(self) -> dict:
        """Those of a read."""
        prefix = "sluice-attribute-"
        named = {name.lower(): value for name, value in self.headers.items()}
        found = {name[len(prefix) :]: value for name, value in named.items() if name.startswith(prefix)}
        more = self.headers.get("Sluice-Attributes-Base64")
        return {**found, **(json.loads(base64.b64decode(more)) if more else {})}


def put_raw(server, key: str, content: bytes, **headers) -> Raw:
    return Raw(server, "PUT", key, content, **headers)


def get_raw(server, key: str, query="", **headers) -> Raw:
    return Raw(server, "GET", key, rest=f"/raw{query}", **headers)


def allow_keys(server, name: str, keys: str):
    """Lets the holder of a token read documents of these keys, as TOML has them, and `root` do everything."""
    rules = '[[rule]]\nname = "all"\nidentities = ["root"]\nrole = "admin"\n'
    rules += f'[[rule]]\nname = "some"\nidentities = ["{name}"]\nrole = "observer"\nkeys = [{keys}]\n'
    (server.directory / "policy.toml").write_text(rules)
    changed = server.sluice("policy", "set", "policy.toml")
    assert changed.returncode == 0, changed
