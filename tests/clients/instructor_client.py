"""instructor in each of its modes: an object that is validated, a stream of partial ones, a list."""

import os
from typing import Literal

import instructor
import openai
from pydantic import BaseModel


class Place(BaseModel):
    town: Literal["Rome", "Oslo"]
    visits: Literal[1, 2, 3]


client = openai.OpenAI(base_url=os.environ["WRITES"] + "/v1", api_key="none", max_retries=0)
body = {"model": "writes", "messages": [{"role": "user", "content": "Where?"}], "max_retries": 0}
for mode in (instructor.Mode.TOOLS, instructor.Mode.TOOLS_STRICT, instructor.Mode.JSON_SCHEMA):
    patched = instructor.from_openai(client, mode=mode)
    assert isinstance(patched.chat.completions.create(**body, max_tokens=200, response_model=Place), Place), mode
    *_, last = patched.chat.completions.create_partial(**body, max_tokens=200, response_model=Place)
    assert last.town in ("Rome", "Oslo") and last.visits in (1, 2, 3), mode
print("every answer is as the client wants it")
