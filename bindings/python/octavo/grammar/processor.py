"""transformers' LogitsProcessor over a grammar."""

from typing import Any, List

from octavo.grammar.bitmask import allocate_bitmask, apply_bitmask
from octavo.grammar.engine import Grammar, LimitReached, Matcher


class GrammarLogitsProcessor:
    """Keeps the texts of generate() within a grammar:

        model.generate(**inputs, logits_processor=[GrammarLogitsProcessor(grammar)])

    Works with torch and with numpy: input_ids (rows, tokens), scores (rows, tokens). Each row of the batch is a
    separate text. A row that has ended allows only end-of-text tokens. Beam search exchanges rows; their tokens are
    then read again. Other prompts begin another call of generate()."""

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self._prompts: List[List[int]] = []
        self._longest = 0  # tokens of a row, including the prompt
        self._rows: List[Matcher] = []
        self._read: List[List[int]] = []

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        rows = input_ids.tolist()
        if not self._continues(rows):
            self._prompts = rows
            self._rows = [Matcher(self.grammar) for _ in rows]
            self._read = [[] for _ in rows]
            self._longest = 0
        self._longest = max(self._longest, len(rows[0]))
        mask = allocate_bitmask(len(self._rows), self.grammar.vocabulary)
        for i, row in enumerate(rows):
            self._follow(i, row[len(self._prompts[i]):])
            self._fill(i, mask[i])
        apply_bitmask(scores, mask)
        return scores

    def _continues(self, rows: List[List[int]]) -> bool:
        """Whether these rows continue the last call of generate()."""
        return (len(rows) == len(self._prompts) and len(rows[0]) <= self._longest + 1
                and all(row[:len(prompt)] == prompt for row, prompt in zip(rows, self._prompts)))

    def _follow(self, i: int, row: List[int]) -> None:
        read = self._read[i]
        same = 0
        while same < min(len(read), len(row)) and read[same] == row[same]:
            same += 1
        if same < len(read):
            self._rows[i].rollback(self._rows[i].accepted - same)
            del read[same:]
        for token in row[same:]:
            if not self._rows[i].accept(token):
                break  # padding after the end
            read.append(token)

    def _fill(self, i: int, mask: Any) -> None:
        try:
            if not self._rows[i].is_terminated:
                return self._rows[i].fill(mask)
        except LimitReached:
            pass  # the text must end
        mask[:] = 0
        for token in self.grammar.vocabulary.eos:
            mask[token // 32] |= (1 << token % 32) - (1 << 32 if token % 32 == 31 else 0)
