"""Python SDK, the session that shakes hands (both lines have it)."""

import os

import anyio
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from walk import walk


async def main():
    server = StdioServerParameters(command=os.environ["SERVER"], env=dict(os.environ))
    async with stdio_client(server) as (read, write):
        async with ClientSession(read, write) as session:
            start = await session.initialize()
            calls = await walk(session.list_tools, session.call_tool)
            version = getattr(start, "protocol_version", None) or start.protocolVersion
            print(f"{version}, {calls} calls")


anyio.run(main)
