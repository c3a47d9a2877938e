"""Prompts as dictionaries: vLLM's types."""

from typing import TypedDict, Union


class TextPrompt(TypedDict, total=False):
    prompt: str
    cache_salt: str  # only prompts with the same salt share cached prefixes


class TokensPrompt(TypedDict, total=False):
    prompt_token_ids: list[int]
    prompt: str
    cache_salt: str


SingletonPrompt = Union[str, list[int], TextPrompt, TokensPrompt]
PromptType = SingletonPrompt
