"""The plan of each step in the log, if a flag requests it."""

import re

import openai
from conftest import eventually, running, serve_command


def test_the_debug_log_has_the_plan_of_each_step_and_no_text(capfd):
    seen = []

    def log():
        seen.append("".join(capfd.readouterr()))
        return "".join(seen)

    with running(serve_command("--device", "cpu", "--log-level", "debug")) as (_, base):
        client = openai.OpenAI(base_url=base + "/v1", api_key="none", max_retries=0)
        client.completions.create(model="demo", prompt="Xylophone", max_tokens=20)
        assert eventually(lambda: re.search(r"step \d+: \d+ tokens of 1 sequences: \[\d+, \d+\)", log()))
        assert "Xylophone" not in log()
