"""Captures the requests that helpers of clients send for users' types. Writes tests/data/tools/helpers.json, for
tests/e2e/test_client_helpers.py.

    pip install instructor langchain-openai "mcp>=2" pydantic
    npm install zod openai
    python capture_helpers.py OUTPUT [NODE_FOLDER]

NODE_FOLDER is the folder of npm's installation. Without it, the requests of zod's helpers are omitted. A server in
this process answers every request with an error and records its response_format, tools and tool_choice.
"""

import http.server
import json
import subprocess
import sys
import threading
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Literal, Optional, Union

import instructor
import openai
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from mcp.server.mcpserver import MCPServer
from pydantic import BaseModel, Field

ZOD = """
import { z } from "zod";
import { zodFunction, zodResponseFormat } from "openai/helpers/zod";
const Shape = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("circle"), radius: z.number() }),
  z.object({ kind: z.literal("box"), width: z.number(), height: z.number().nullable() }),
]);
const Order = z.object({ id: z.uuid(), email: z.email(), placed: z.iso.datetime(), state: z.enum(["new", "paid"]),
  tags: z.array(z.string().max(8)).max(2), shape: Shape, note: z.string().max(20).nullable(), count: z.number().int().min(1).max(9) });
const Loose = z.object({ pair: z.tuple([z.string().max(5), z.number()]), counts: z.record(z.string().max(5), z.number().int()).optional() });
const format = (schema) => ({ response_format: { type: "json_schema", json_schema: { name: "order", schema } } });
console.log(JSON.stringify({
  zod: { response_format: zodResponseFormat(Order, "order") },
  zod_tool: { tools: [zodFunction({ name: "order", parameters: Order })], tool_choice: "required" },
  zod_draft7: format(z.toJSONSchema(Loose, { target: "draft-7" })),
  zod_draft2020: format(z.toJSONSchema(Loose)),
}));
"""


class Circle(BaseModel):
    kind: Literal["circle"]
    radius: float


class Box(BaseModel):
    kind: Literal["box"]
    width: float
    height: Optional[float] = None


class Order(BaseModel):
    """An order."""

    placed: datetime
    due: Optional[date] = None
    total: Decimal
    count: Annotated[int, Field(ge=1, le=9)]
    shape: Annotated[Union[Circle, Box], Field(discriminator="kind")]


@tool
def find_orders(state: Literal["new", "paid"], since: date, limit: Annotated[int, Field(ge=1, le=50)] = 10) -> str:
    """Finds orders."""


server_of_tools = MCPServer("shop")


@server_of_tools.tool()
def place(order: Order, tags: Annotated[set[str], Field(max_length=2)], dry_run: bool = False) -> str:
    """Places an order."""


seen = []


class Keeper(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        seen.append({key: body[key] for key in ("response_format", "tools", "tool_choice") if key in body})
        self.send_response(400)
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        pass


def captured(call):
    seen.clear()
    try:
        call()
    except Exception:  # the server's refusal; each helper raises another exception
        pass
    return seen[0]


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Keeper)
threading.Thread(target=server.serve_forever, daemon=True).start()
base = f"http://127.0.0.1:{server.server_port}/v1"
client = openai.OpenAI(base_url=base, api_key="none", max_retries=0)
chat = ChatOpenAI(base_url=base, api_key="none", model="m", max_retries=0)
messages = [{"role": "user", "content": "Hi"}]

requests = {}
for mode in (instructor.Mode.TOOLS, instructor.Mode.TOOLS_STRICT, instructor.Mode.JSON_SCHEMA):
    helper = instructor.from_openai(client, mode=mode)
    ask = lambda: helper.chat.completions.create(model="m", messages=messages, response_model=Order, max_retries=1)  # noqa: E731
    requests[f"instructor_{mode.value}"] = captured(ask)
for method in ("json_schema", "function_calling"):
    requests[f"langchain_{method}"] = captured(lambda: chat.with_structured_output(Order, method=method).invoke("Hi"))
requests["langchain_tools"] = captured(lambda: chat.bind_tools([find_orders], tool_choice="required").invoke("Hi"))
tools = [{"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.parameters}}
         for t in server_of_tools._tool_manager.list_tools()]
requests["mcp"] = {"tools": tools, "tool_choice": "required"}
if len(sys.argv) > 2:
    out = subprocess.run(["node", "--input-type=module", "-"], input=ZOD.encode(), cwd=sys.argv[2], stdout=subprocess.PIPE, check=True)
    requests |= json.loads(out.stdout)
json.dump(requests, open(sys.argv[1], "w"), indent=1)
print({name: list(fields) for name, fields in requests.items()})
