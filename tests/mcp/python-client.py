"""Python SDK, v2 line: the client that speaks the stateless era."""

import os

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from walk import walk


async def main():
    server = StdioServerParameters(command=os.environ["SERVER"], env=dict(os.environ))
    async with Client(stdio_client(server)) as client:
        calls = await walk(client.list_tools, client.call_tool)
        print(f"{client.protocol_version}, {calls} calls")


anyio.run(main)
