"""Tool use: function schemas, requests that need them, replies and final answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from chat import Message, to_json
from exercises import nonsense, number, random_words
from world import WEATHER, World


def schema(name: str, description: str, /, **parameters: str) -> dict[str, Any]:
    """Returns a function schema in OpenAI's layout. Every parameter is required."""
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": {
                "type": "object",
                "properties": {key: {"type": kind} for key, kind in parameters.items()},
                "required": list(parameters),
            },
        },
    }


@dataclass(frozen=True)
class Use:
    """A request with its call, the tool's result, and the final answer."""

    request: str
    arguments: dict[str, Any]
    response: Any
    answer: str


CITIES = "Paris,London,Tokyo,Rome,Berlin,Oslo,Madrid,New York,Zürich,Boston".split(",")
ROOMS = (
    "kitchen,bedroom,hall,garden,attic,library,cellar,workshop,bathroom,dining room,garage,"
    "office,barn,living room,stable,tower"
).split(",")


def place_name(rng: Random, world: World) -> str:
    """Returns a place of the world or a real city."""
    return rng.choice([place.name for place in world.places] + CITIES)


def weather(rng: Random, world: World) -> Use:
    city = rng.choice([place_name(rng, world), nonsense(rng).capitalize()])
    sky, degrees = rng.choice(WEATHER), rng.randint(-10, 35)
    ask = rng.choice(["What is the weather in {}?", "How is the weather in {} today?", "Is it warm in {} right now?",
                      "Please check the weather in {}."])
    return Use(ask.format(city), {"city": city}, {"weather": sky, "temperature": degrees},
               f"It is {sky} in {city}, with {degrees} degrees.")


def add(rng: Random, world: World) -> Use:
    a, b = number(rng) + rng.choice([0, 1000]), number(rng)
    ask = rng.choice(["Use the tool to add {} and {}.", "Please add {} and {}.", "What is the sum of {} and {}?"])
    return Use(ask.format(a, b), {"a": a, "b": b}, {"result": a + b}, f"The sum is {a + b}.")


def multiply(rng: Random, world: World) -> Use:
    a, b = number(rng), number(rng)
    ask = rng.choice(["Multiply {} by {}.", "What is the product of {} and {}?", "Please multiply {} and {}."])
    return Use(ask.format(a, b), {"a": a, "b": b}, {"result": a * b}, f"The product is {a * b}.")


def find_person(rng: Random, world: World) -> Use:
    person = rng.choice(world.people)
    phone = rng.randrange(100000, 1000000)
    ask = rng.choice(["What is the phone number of {}?", "Find the number of {}.", "How can I call {}?"])
    return Use(ask.format(person.name), {"name": person.name}, {"phone": phone},
               f"The phone number of {person.name} is {phone}.")


def send_message(rng: Random, world: World) -> Use:
    to, text = rng.choice(world.people).name, " ".join(random_words(rng, 2, 6))
    ask = rng.choice(['Send "{1}" to {0}.', 'Write to {0}: "{1}"', 'Tell {0} "{1}".'])
    return Use(ask.format(to, text), {"to": to, "text": text}, {"status": "sent"}, f"I sent the message to {to}.")


def set_timer(rng: Random, world: World) -> Use:
    minutes = rng.randint(1, 120)
    ask = rng.choice(["Set a timer for {} minutes.", "Wake me in {} minutes.", "Remind me in {} minutes."])
    return Use(ask.format(minutes), {"minutes": minutes}, {"status": "ok"}, f"The timer is set for {minutes} minutes.")


def get_time(rng: Random, world: World) -> Use:
    place = place_name(rng, world)
    clock = f"{rng.randrange(24):02}:{rng.randrange(60):02}"
    ask = rng.choice(["What time is it in {}?", "Tell me the time in {}.", "How late is it in {}?", "Which time is it now in {}?"])
    return Use(ask.format(place), {"place": place}, {"time": clock}, f"It is {clock} in {place}.")


def buy_ticket(rng: Random, world: World) -> Use:
    start, end = (place.name for place in rng.sample(world.places, 2))
    price = rng.randint(3, 90)
    ask = rng.choice(["Buy a ticket from {} to {}.", "I want to travel from {} to {}.", "I need a ticket from {} to {}."])
    return Use(ask.format(start, end), {"from": start, "to": end}, {"price": price},
               f"Your ticket from {start} to {end} costs {price} coins.")


def search_books(rng: Random, world: World) -> Use:
    topic = rng.choice([rng.choice(world.animals).kind, rng.choice(world.things).name, rng.choice(world.places).name])
    count = rng.randrange(20)
    ask = rng.choice(["Find books about {}.", "Are there any books about {}?", "Search the library for {}."])
    return Use(ask.format(topic), {"topic": topic}, {"count": count}, f"There are {count} books about {topic}.")


def switch_light(rng: Random, world: World) -> Use:
    room = rng.choice(ROOMS)
    on = rng.random() < 0.5
    state = "on" if on else "off"
    ask = rng.choice(["Turn {1} the light in the {0}.", "Switch {1} the {0} light.", "Light {1} in the {0}, please.", "Please turn the {0} light {1}."])
    return Use(ask.format(room, state), {"room": room, "on": on}, {"status": "ok"}, f"The light in the {room} is {state}.")


TOOLS: list[tuple[dict[str, Any], Callable[[Random, World], Use]]] = [
    (schema("get_weather", "Get the weather in a city", city="string"), weather),
    (schema("add", "Add two numbers", a="number", b="number"), add),
    (schema("multiply", "Multiply two numbers", a="number", b="number"), multiply),
    (schema("find_person", "Look up a phone number", name="string"), find_person),
    (schema("send_message", "Send a message to a person", to="string", text="string"), send_message),
    (schema("set_timer", "Set a timer", minutes="integer"), set_timer),
    (schema("get_time", "Get the time in a place", place="string"), get_time),
    (schema("buy_ticket", "Buy a train ticket", **{"from": "string", "to": "string"}), buy_ticket),
    (schema("search_books", "Search the library", topic="string"), search_books),
    (schema("switch_light", "Switch a light on or off", room="string", on="boolean"), switch_light),
]


def call_messages(use: Use, name: str) -> list[Message]:
    """Returns the request, the call, the tool's result and the final answer."""
    call = {"type": "function", "function": {"name": name, "arguments": use.arguments}}
    return [
        {"role": "user", "content": use.request},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": to_json(use.response)},
        {"role": "assistant", "content": use.answer},
    ]


def parallel_messages(first: Use, second: Use, name: str) -> list[Message]:
    """Returns two requests for the same function in one turn, with parallel calls."""
    calls = [{"type": "function", "function": {"name": name, "arguments": use.arguments}} for use in (first, second)]
    return [
        {"role": "user", "content": f"{first.request} {second.request}"},
        {"role": "assistant", "content": "", "tool_calls": calls},
        {"role": "tool", "content": to_json(first.response)},
        {"role": "tool", "content": to_json(second.response)},
        {"role": "assistant", "content": f"{first.answer} {second.answer}"},
    ]
