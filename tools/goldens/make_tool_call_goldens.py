"""Makes tests/data/tools/calls.json: the results of vLLM's parsers for answers of every dialect.

    python tools/goldens/make_tool_call_goldens.py          (vllm installed)
"""

import json
import pathlib
import re

from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.tool_parsers import ToolParserManager

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "tools" / "calls.json"

PARAMETERS = {"city": {"type": "string"}, "days": {"type": "integer"}, "opts": {"type": "object"}}
TOOLS = [
    {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "properties": PARAMETERS}}},
    {"type": "function", "function": {"name": "stop", "parameters": {"type": "object", "properties": {}}}},
]
OBJECT = '{"city": "Köln \\"x\\"", "days": 3, "opts": {"a": [1, null]}}'
BLOCKS = [("city", 'Köln "x"\n</par'), ("days", "3"), ("opts", '{"a": [1, null]}')]


def call(key="arguments", name="get_weather", value=OBJECT):
    return f'{{"name": "{name}", "{key}": {value}}}'


def blocks(begin, middle, end):
    return "".join(begin + name + middle + value + end for name, value in BLOCKS)


def dsml(calls, space):
    texts = {"city": "true"}
    body = "".join(
        f'<｜DSML｜{space}parameter name="{name}" string="{texts.get(name, "false")}">{value}</｜DSML｜{space}parameter>\n'
        for name, value in BLOCKS
    )
    return (
        f'Ok.<｜DSML｜{calls}>\n<｜DSML｜{space}invoke name="get_weather">\n{body}</｜DSML｜{space}invoke>\n'
        f'<｜DSML｜{space}invoke name="stop">\n</｜DSML｜{space}invoke>\n</｜DSML｜{calls}>'
    )


def plamo(name, arguments):
    def between(what, text):
        return f"<|plamo:begin_{what}:plamo|>{text}<|plamo:end_{what}:plamo|>"

    constrained = f"<|plamo:constrain|>json<|plamo:msg|>{arguments}"
    return between("tool_request", between("tool_name", name) + between("tool_arguments", constrained))


BOTH = call() + ", " + call(name="stop", value="{}")
ANSWERS = {
    "hermes": [
        f"Look.\n<tool_call>\n{call()}\n</tool_call>\n<tool_call>\n{call(name='stop', value='{}')}\n</tool_call>",
        "Not a <tool",
        f"<tool_call>{call()}",
    ],
    "granite4": [f"<tool_call>{call()}</tool_call>"],
    "longcat": [f"<longcat_tool_call>\n{call()}\n</longcat_tool_call>"],
    "llama3_json": [
        f"{call('parameters')}; {call('parameters', 'stop', '{}')}",
        f'{{"type": "function", "name": "get_weather", "parameters": {OBJECT}}}',
        '{"name": "Bob", "age": 3}',
    ],
    "internlm": [f"Hm<|action_start|><|plugin|>\n{call('parameters')}<|action_end|>"],
    "mistral": [f"[TOOL_CALLS][{BOTH}]"],
    "granite": [f"<|tool_call|>[{BOTH}]"],
    "jamba": [f"<tool_calls>[\n  {BOTH}\n]</tool_calls>"],
    "hunyuan_a13b": [f"<tool_calls>[{call()}]</tool_calls>"],
    "phi4_mini_json": [f'functools[{call(value="{}")}]'],
    "xlam": [f"[{BOTH}]"],
    "pythonic": ["[get_weather(city='Köln \"x\"', days=3, opts={'a': [1, None]}), stop()]"],
    "deepseek_v3": [
        "Sure.<｜tool▁calls▁begin｜>"
        f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{OBJECT}\n```<｜tool▁call▁end｜>\n"
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>stop\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
    ],
    "deepseek_v31": [
        f"Sure.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{OBJECT}<｜tool▁call▁end｜>"
        "<｜tool▁call▁begin｜>stop<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
    ],
    "plamo3": [
        f"Sure.<|plamo:begin_tool_requests:plamo|>{plamo('get_weather', OBJECT)}{plamo('stop', '{}')}<|plamo:end_tool_requests:plamo|>"
    ],
    "apertus": [f'Sure.<|tools_prefix|>[{{"get_weather": {OBJECT}}}, {{"stop": {{}}}}]<|tools_suffix|>'],
    "minicpm5": [
        '<function name="get_weather"><param name="city"><![CDATA[Köln "x"\n</par]]></param><param name="days">3</param>'
        '<param name="opts">{"a": [1, null]}</param></function>\n<function name="stop"></function>'
    ],
    "deepseek_v4": [dsml("tool_calls", "")],
    "deepseek_v41": [dsml(" calls", " ")],
    "qwen3_json": [f"<tool_call>\n{call()}\n</tool_call>"],
    "qwen3_coder": [
        "Ok.\n<tool_call>\n<function=get_weather>\n" + blocks("<parameter=", ">\n", "\n</parameter>\n")
        + "</function>\n</tool_call>\n<tool_call>\n<function=stop>\n</function>\n</tool_call>"
    ],
    "seed_oss": [
        "<seed:tool_call>\n<function=get_weather>\n" + blocks("<parameter=", ">", "</parameter>\n")
        + "</function>\n</seed:tool_call>"
    ],
    "minimax_m2": [
        '<minimax:tool_call>\n<invoke name="get_weather">\n' + blocks('<parameter name="', '">', "</parameter>\n")
        + '</invoke>\n<invoke name="stop">\n</invoke>\n</minimax:tool_call>'
    ],
    "dots": [
        '<dots_function_call>\n<invoke name="get_weather">\n' + blocks('<parameter name="', '">', "</parameter>\n")
        + '</invoke>\n<invoke name="stop">\n</invoke>\n</dots_function_call>'
    ],
    "hy_v3": [
        "Ok.<tool_calls>\n<tool_call>get_weather<tool_sep>\n" + blocks("<arg_key>", "</arg_key>\n<arg_value>", "</arg_value>\n")
        + "</tool_call>\n<tool_call>stop<tool_sep>\n</tool_call>\n</tool_calls>"
    ],
    "poolside_v1": [
        "<tool_call>get_weather\n" + blocks("<arg_key>", "</arg_key>\n<arg_value>", "</arg_value>\n") + "</tool_call>"
    ],
    "ling3": ["<tool_call>get_weather" + blocks("<arg_key>", "</arg_key><arg_value>", "</arg_value>") + "</tool_call>"],
    "glm45": [
        "<tool_call>get_weather\n" + blocks("<arg_key>", "</arg_key>\n<arg_value>", "</arg_value>\n")
        + "</tool_call>\n<tool_call>stop\n</tool_call>"
    ],
    "glm47": ["A<tool_call>get_weather" + blocks("<arg_key>", "</arg_key><arg_value>", "</arg_value>") + "</tool_call>"],
}


class Marks:
    """The part of a tokenizer that the parsers use: the ids of the dialects' marks."""

    ids = {
        mark: 1000 + i
        for i, mark in enumerate(
            dict.fromkeys(
                ["<think>", "</think>", "<seed:think>", "</seed:think>", "<|python_tag|>", "[TOOL_CALLS]"]
                + ["<|im_start|>", "<|im_end|>"]
                + [mark for texts in ANSWERS.values() for text in texts for mark in re.findall(r"<[^<>\s=]+>", text)]
            )
        )
    }
    vocab = ids
    all_special_tokens = list(ids)
    all_special_ids = list(ids.values())
    is_fast = True

    def get_vocab(self):
        return self.ids

    def encode(self, text, **_):
        return [self.ids.get(text, 1)]

    def decode(self, ids, **_):
        return "".join(mark for mark, id in self.ids.items() if id in ids)

    def convert_tokens_to_ids(self, token):
        return self.ids.get(token)


def main():
    request = ChatCompletionRequest(model="m", messages=[{"role": "user", "content": "x"}], tools=TOOLS, tool_choice="auto")
    found = []
    for name, texts in ANSWERS.items():
        for text in texts:
            parser = ToolParserManager.get_tool_parser(name)(Marks(), request.tools)
            parsed = parser.extract_tool_calls(text, request)
            calls = [{"name": c.function.name, "arguments": json.loads(c.function.arguments)} for c in parsed.tool_calls]
            found.append({"parser": name, "text": text, "content": parsed.content or "", "calls": calls})
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n")


if __name__ == "__main__":
    main()
