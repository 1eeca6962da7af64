"""The YAML language server of editors (``npm install -g yaml-language-server``), asked over its protocol."""

from __future__ import annotations

import json
import subprocess
import threading
from itertools import count
from pathlib import Path
from queue import Queue
from typing import Any

from tests.support.patience import HANG_S

CURSOR = "¦"
"""Where the cursor stands in a text."""


class LanguageServer:
    """``schema``: what all files are completed and checked by, if they name none. ``folder``: where
    they are."""

    def __init__(self, command: str, schema: Path | None, folder: Path = Path("/suite")) -> None:
        self._folder = folder
        self._settings = {
            "validate": True,
            "completion": True,
            "hover": True,
            "schemaStore": {"enable": False},
            "schemas": {schema.as_uri(): ["*.yaml"]} if schema else {},
        }
        self._process = subprocess.Popen([command, "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._ids = count(1)
        self._answers: Queue[dict[str, Any]] = Queue()
        self._is_configured = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()
        snippets = {"completion": {"completionItem": {"snippetSupport": True}}}
        can = {"textDocument": snippets, "workspace": {"configuration": True}}
        self._ask("initialize", {"processId": None, "rootUri": None, "capabilities": can})
        self._send("initialized", {})
        self._send("workspace/didChangeConfiguration", {"settings": {"yaml": self._settings}})
        assert self._is_configured.wait(HANG_S)

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()

    def mistakes(self, text: str) -> list[tuple[int, str]]:
        """The line, from 1, and the message of each."""
        uri = self._open(text)
        while True:
            said = self._answers.get(timeout=HANG_S)
            if said.get("method") == "textDocument/publishDiagnostics" and said["params"]["uri"] == uri:
                found = said["params"]["diagnostics"]
                return [(each["range"]["start"]["line"] + 1, each["message"]) for each in found]

    def completions(self, text: str) -> dict[str, str]:
        """What is proposed at the cursor, and what is said of each."""
        found = self._at_cursor("completion", text)
        items = found["items"] if isinstance(found, dict) else found
        return {item["label"]: item.get("documentation") or "" for item in items}

    def hover(self, text: str) -> str:
        """What is shown of what is below the cursor."""
        return str(self._at_cursor("hover", text)["contents"]["value"])

    def _at_cursor(self, method: str, text: str) -> Any:
        *above, line = text.partition(CURSOR)[0].split("\n")
        position = {"line": len(above), "character": len(line)}
        asked = {"textDocument": {"uri": self._open(text.replace(CURSOR, ""))}, "position": position}
        return self._ask(f"textDocument/{method}", asked)

    def _open(self, text: str) -> str:
        uri = (self._folder / f"{next(self._ids)}.yaml").as_uri()
        document = {"uri": uri, "languageId": "yaml", "version": 1, "text": text}
        self._send("textDocument/didOpen", {"textDocument": document})
        return uri

    def _ask(self, method: str, params: Any) -> Any:
        number = next(self._ids)
        self._send(method, params, id=number)
        while True:
            said = self._answers.get(timeout=HANG_S)
            if said.get("id") == number and "method" not in said:
                return said["result"]

    def _send(self, method: str, params: Any, **more: Any) -> None:
        self._write({"jsonrpc": "2.0", "method": method, "params": params, **more})

    def _write(self, message: dict[str, Any]) -> None:
        data = json.dumps(message).encode()
        assert self._process.stdin
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(data), data))
        self._process.stdin.flush()

    def _read(self) -> None:
        stream = self._process.stdout
        assert stream
        while head := stream.readline():
            size = int(head.partition(b":")[2])
            stream.readline()
            message = json.loads(stream.read(size))
            if message.get("method") == "workspace/configuration":
                asked = [item.get("section") for item in message["params"]["items"]]
                known = [self._settings if section == "yaml" else None for section in asked]
                self._write({"jsonrpc": "2.0", "id": message["id"], "result": known})
                self._is_configured.set()
            elif "method" in message and "id" in message:
                self._write({"jsonrpc": "2.0", "id": message["id"], "result": None})
            else:
                self._answers.put(message)
