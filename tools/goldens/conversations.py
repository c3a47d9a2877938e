"""Conversations for tests of every chat template: usual requests of clients, and unusual ones."""

NOW = 1763683200  # 2025-11-21 00:00:00 UTC, the time of strftime_now

_WEATHER = {
    "type": "function",
    "function": {
        "name": "current_weather",
        "description": "Weather at a place, \"now\" & <soon>.",
        "parameters": {
            "type": "object",
            "properties": {
                "place": {"type": "string", "description": "City, e.g. Zürich 🏔"},
                "days": {"type": "integer", "minimum": 1, "default": 3},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
                "detailed": {"type": ["boolean", "null"], "default": False},
            },
            "required": ["place"],
        },
    },
}
_SUM = {
    "type": "function",
    "function": {
        "name": "add_up",
        "description": "Adds numbers.",
        "parameters": {
            "type": "object",
            "properties": {"items": {"type": "array", "items": {"type": "number"}}, "precision": {"type": "number"}},
            "required": ["items"],
        },
        "return": {"type": "number", "description": "The sum"},
    },
}
TOOLS = [_WEATHER, _SUM]


def _user(text):
    return {"role": "user", "content": text}


def _assistant(text, **more):
    return {"role": "assistant", "content": text, **more}


def _call(name, arguments, call_id="call12345"):
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _system(text):
    return {"role": "system", "content": text}


_TOOL_TURN = [
    _user("How warm is it in Zürich?"),
    _assistant("", tool_calls=[_call("current_weather", {"place": "Zürich", "days": 1, "detailed": True})]),
    {"role": "tool", "name": "current_weather", "tool_call_id": "call12345", "content": '{"celsius": 21.5}'},
]

# Each element: the arguments of apply_chat_template.
CONVERSATIONS = [
    {"messages": [_user("Hello, who are you?")], "add_generation_prompt": True},
    {"messages": [_system("You are a terse poet."), _user("Write about <rain> & 'wind'.")],
     "add_generation_prompt": True},
    {"messages": [_user("One"), _assistant("Two"), _user("Three"), _assistant("Four")],
     "add_generation_prompt": False},
    {"messages": [_system("  Spaces around.  \n"), _user("\n What is 2+2? \t"), _assistant(" It is 4.\n\n"),
                  _user("Sure?")], "add_generation_prompt": True},
    {"messages": [_user("Grüße, 你好, नमस्ते, 👩‍👩‍👧‍👦 \"quoted\" \\ back\\slash {{ braces }} {% tag %}"),
                  _assistant("Ünïcödé ✅"), _user("")], "add_generation_prompt": True},
    {"messages": [_user("Weather?")], "tools": TOOLS, "add_generation_prompt": True},
    {"messages": [_system("Use tools.")] + _TOOL_TURN, "tools": TOOLS, "add_generation_prompt": True},
    {"messages": _TOOL_TURN + [_assistant("It is 21.5 °C."), _user("Thanks!")], "tools": TOOLS,
     "add_generation_prompt": True},
    {"messages": [_user("Add"), _assistant(None, tool_calls=[
        _call("add_up", {"items": [1, 2.5, -3e21, 1e-7], "note": "a\u2028b", "nothing": None}, "abcdefghi")]),
        {"role": "tool", "name": "add_up", "tool_call_id": "abcdefghi", "content": "0.5"}],
     "tools": [_SUM], "add_generation_prompt": True},
    {"messages": [_user([{"type": "text", "text": "Part one."}, {"type": "text", "text": " Part two."}]),
                  _assistant([{"type": "text", "text": "Both read."}]), _user("Good.")],
     "add_generation_prompt": True},
    {"messages": [_user("Think."), _assistant("<think>\nstep by step\n</think>\n\nDone."), _user("Again."),
                  _assistant("Yes.", reasoning_content="quietly")], "add_generation_prompt": False},
    {"messages": [_user("Think."), _assistant("Fine.", reasoning_content="because"), _user("More?")],
     "add_generation_prompt": True, "kwargs": {"enable_thinking": False, "custom": [1, True, None, "x"]}},
    {"messages": [_user("a"), _user("b")], "add_generation_prompt": True},
    {"messages": [_assistant("I begin."), _user("ok")], "add_generation_prompt": True},
    {"messages": [_system("Only a system turn.")], "add_generation_prompt": True},
    {"messages": [], "add_generation_prompt": True},
    {"messages": [_user("Read."), _assistant("I will.")], "add_generation_prompt": False,
     "documents": [{"title": "Ünï", "text": "First text."}, {"title": "Two", "text": "Second \"text\"."}]},
    {"messages": [_user("Two at once"), _assistant("", tool_calls=[
        _call("current_weather", {"place": "Oslo"}, "call00001"), _call("add_up", {"items": []}, "call00002")]),
        {"role": "tool", "name": "current_weather", "tool_call_id": "call00001", "content": {"celsius": -4, "ok": True}},
        {"role": "tool", "name": "add_up", "tool_call_id": "call00002", "content": [{"type": "text", "text": "0"}]}],
     "tools": TOOLS, "add_generation_prompt": True, "kwargs": {"date_string": "01 Feb 2025", "tools_in_user_message": False}},
    {"messages": [_user("Arguments as text"), _assistant("", tool_calls=[_call("add_up", '{"items": [1]}', "call00003")])],
     "tools": [_SUM], "add_generation_prompt": False},
    {"messages": [_user("Go on"), _assistant(" The answer is ")], "add_generation_prompt": False,
     "continue_final_message": True},
    {"messages": [_user("Go on"), _assistant([{"type": "text", "text": "It"}, {"type": "text", "text": "is"}])],
     "add_generation_prompt": False, "continue_final_message": True},
    {"messages": [_user("Go on"), _assistant(None)], "add_generation_prompt": False, "continue_final_message": True},
]
SPECIAL_TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
