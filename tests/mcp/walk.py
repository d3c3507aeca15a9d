"""Plays calls.json through a Python client; see walk.mjs."""

import json
import os
import pathlib
import re

NAMES = (
    "read_inbox read_mail read_thread send_mail forward_mail upload_attachment "
    "download_attachment suggest_address list_contacts session_participants connect_to_server"
)


async def walk(list_tools, call_tool):
    names = " ".join(tool.name for tool in (await list_tools()).tools)
    assert names == NAMES, names
    known = {"person": os.environ["PERSON"], "file": os.environ["FILE"]}

    def fill(value):
        if not isinstance(value, str):
            return value
        return re.sub(r"\$\{(\w+)\}", lambda found: known[found[1]], value)

    calls = json.loads(pathlib.Path(__file__).with_name("calls.json").read_text("utf8"))
    seen = set()
    for step in calls:
        given = {name: fill(value) for name, value in step["arguments"].items()}
        result = await call_tool(step["tool"], given)
        text = result.content[0].text
        failed = getattr(result, "is_error", None)
        failed = result.isError if failed is None else failed
        assert bool(failed) == bool(step.get("error")), f"{step['tool']}: {text}"
        assert step.get("error", "") in text, f"{step['tool']}: {text}"
        for name, pattern in step.get("save", {}).items():
            found = re.search(pattern, text)
            assert found, f"{step['tool']}: no {name} in {text}"
            known[name] = found[1]
        seen.add(step["tool"])
    assert len(seen) == 11, seen
    return len(calls)
