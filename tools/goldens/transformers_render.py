"""Renders one case with transformers, at a fixed time."""

import datetime
import os
import time

os.environ["TZ"] = "UTC"
time.tzset()

from transformers.utils import chat_template_utils  # noqa: E402


def _stopped_clock(now):
    class Clock(datetime.datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.datetime.fromtimestamp(now, tz)

    return Clock


def render(case):
    """Returns {"text"} or {"error"} for a case with template, special_tokens, now and the arguments of
    apply_chat_template."""
    chat_template_utils.datetime = _stopped_clock(case["now"])
    try:
        rendered, _ = chat_template_utils.render_jinja_template(
            conversations=[case["messages"]], tools=case.get("tools"), documents=case.get("documents"),
            chat_template=case["template"], add_generation_prompt=case["add_generation_prompt"],
            continue_final_message=case.get("continue_final_message", False),
            **{**case["special_tokens"], **case.get("kwargs", {})})
        return {"text": rendered[0]}
    except Exception as error:  # a template may raise anything
        return {"error": str(error)}
