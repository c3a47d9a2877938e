"""transformers' LogitsProcessor over a grammar."""

from typing import Any, List, Optional

from octavo.grammar.bitmask import allocate_bitmask, apply_bitmask
from octavo.grammar.engine import Grammar, LimitReached, Matcher


class GrammarLogitsProcessor:
    """Keeps generate() to a grammar; a fresh one for each call:

        model.generate(**inputs, logits_processor=[GrammarLogitsProcessor(grammar)])

    Works with torch and with numpy: input_ids (rows, tokens), scores (rows, tokens). Each row of the batch is a text
    of its own; a row that has ended allows end-of-text tokens alone. For beam search, rows change places: a row's
    tokens are then read again."""

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self._prompt: Optional[int] = None
        self._rows: List[Matcher] = []
        self._read: List[List[int]] = []

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        if self._prompt is None:
            self._prompt = input_ids.shape[1]
            self._rows = [Matcher(self.grammar) for _ in range(input_ids.shape[0])]
            self._read = [[] for _ in self._rows]
        mask = allocate_bitmask(len(self._rows), self.grammar.vocabulary)
        for i, row in enumerate(input_ids[:, self._prompt:].tolist()):
            self._follow(i, row)
            self._fill(i, mask[i])
        apply_bitmask(scores, mask)
        return scores

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
