"""OpenAI's Agents SDK with tools and output_type at once: the model calls the tool, and its answer follows the schema.
Skipped if the package is missing."""

import asyncio
from typing import Literal

import openai
import pytest
from conftest import PATIENCE
from pydantic import BaseModel

agents = pytest.importorskip("agents")


class Weather(BaseModel):
    town: Literal["Graystone", "Mossford"]
    sky: Literal["sunny", "rainy"]


@pytest.mark.parametrize("kind", ["OpenAIChatCompletionsModel", "OpenAIResponsesModel"])
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_an_agent_calls_its_tool_and_answers_in_its_output_type(server, kind, streams):
    agents.set_tracing_disabled(True)
    choices = ["auto", "none"]  # tool_choice after the first call and after the second one; the demo model calls until it may not
    towns = []

    @agents.function_tool
    def get_weather(city: Literal["Graystone", "Mossford"]) -> str:
        """The weather of a city."""
        towns.append(city)
        agent.model_settings = agents.ModelSettings(temperature=0, tool_choice=choices.pop(0))
        return f"sunny in {city}"

    client = openai.AsyncOpenAI(base_url=server + "/v1", api_key="none", timeout=PATIENCE, max_retries=0)
    agent = agents.Agent(name="weather", instructions="Answer.", model=getattr(agents, kind)(model="demo", openai_client=client),
                         tools=[get_weather], output_type=Weather, reset_tool_choice=False,
                         model_settings=agents.ModelSettings(temperature=0, tool_choice="required"))

    async def run():
        if not streams:
            return await agents.Runner.run(agent, "What is the weather in Graystone?")
        result = agents.Runner.run_streamed(agent, "What is the weather in Graystone?")
        async for _ in result.stream_events():
            pass
        return result

    result = asyncio.run(run())
    assert towns and isinstance(result.final_output, Weather)
    assert len(result.raw_responses) == 1 + len(towns)
