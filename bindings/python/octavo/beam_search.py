"""Beam search: vLLM's parameters, outputs and rules."""

from dataclasses import dataclass, field
from typing import Optional

from octavo.outputs import Logprob


@dataclass
class BeamSearchParams:
    beam_width: int
    max_tokens: int
    ignore_eos: bool = False
    temperature: float = 0.0
    length_penalty: float = 1.0


@dataclass
class BeamSearchSequence:
    tokens: list[int]  # prompt and output tokens
    logprobs: list[dict[int, Logprob]] = field(default_factory=list)
    cum_logprob: float = 0.0
    text: Optional[str] = None  # text of `tokens`
    finish_reason: Optional[str] = None  # stop, length


@dataclass
class BeamSearchOutput:
    sequences: list[BeamSearchSequence]  # best first


class Search:
    """The beams of one prompt. Each round extends every beam by one token, until enough sequences are complete or no
    beam is left."""

    def __init__(self, prompt: list[int], params: BeamSearchParams, eos: set[int]):
        self.beams = [BeamSearchSequence(prompt)]
        self._params = params
        self._eos = eos
        self._completed: list[BeamSearchSequence] = []

    def extend(self, likely: list[dict[int, Logprob]]) -> None:
        """Extends the beams. likely: for each beam, its candidates for the next token."""
        longer = []
        for beam, tokens in zip(self.beams, likely):
            for token, found in tokens.items():
                sequence = BeamSearchSequence(beam.tokens + [token], beam.logprobs + [tokens],
                                              beam.cum_logprob + found.logprob)
                if token in self._eos and not self._params.ignore_eos:
                    sequence.finish_reason = "stop"
                    self._completed.append(sequence)
                else:
                    longer.append(sequence)
        self.beams = self._best(longer)

    def result(self) -> list[BeamSearchSequence]:
        for beam in self.beams:
            beam.finish_reason = "length"
        return self._best(self._completed + self.beams)

    def _best(self, sequences: list[BeamSearchSequence]) -> list[BeamSearchSequence]:
        return sorted(sequences, key=self._score, reverse=True)[:self._params.beam_width]

    def _score(self, sequence: BeamSearchSequence) -> float:
        length = len(sequence.tokens) - (sequence.tokens[-1] in self._eos)
        return sequence.cum_logprob / length ** self._params.length_penalty
