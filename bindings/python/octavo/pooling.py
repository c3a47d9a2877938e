"""Pooling models: vLLM's parameters and outputs for embeddings, classes and scores."""

import array
import base64
import json
from dataclasses import asdict, dataclass
from typing import Any, Generic, Optional, TypeVar

from octavo._library import OctavoError, Piece

Data = TypeVar("Data")


@dataclass
class LateChunkingParams:
    """The output has the mean of the token vectors of each chunk."""
    chunk_size: int  # number of tokens of a chunk


@dataclass
class LateChunk:
    token_range: tuple[int, int]
    char_range: Optional[tuple[int, int]]  # null if the chunk has only special tokens


@dataclass
class LateChunkingMetadata:
    chunk_size: int
    input_tokens: int
    chunks: list[LateChunk]
    strategy: str = "fixed_tokens"


@dataclass
class PoolingParams:
    """Parameters for the model's head."""
    # maximum number of tokens of a text; -1: the model's maximum
    truncate_prompt_tokens: Optional[int] = None
    dimensions: Optional[int] = None  # keep only the first dimensions of the embedding
    # None: True; normalises embeddings, turns scores into probabilities
    use_activation: Optional[bool] = None
    late_chunking_params: Optional[LateChunkingParams] = None  # for the task "token_embed"

    def body(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}


class Numbers(list):
    """A vector, or a list of rows, with a tensor's shape."""

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self), len(self[0])) if self and isinstance(self[0], list) else (len(self),)

    def tolist(self) -> list[Any]:
        return list(self)


@dataclass
class PoolingOutput:
    data: Numbers  # the head's output: an embedding, a number for each class, or a vector for each token


@dataclass
class EmbeddingOutput:
    embedding: list[float]

    @property
    def hidden_size(self) -> int:
        return len(self.embedding)


@dataclass
class ClassificationOutput:
    probs: list[float]
    label: str  # name of the most likely class

    @property
    def num_classes(self) -> int:
        return len(self.probs)


@dataclass
class ScoringOutput:
    score: float


@dataclass
class PoolingRequestOutput(Generic[Data]):
    request_id: str
    outputs: Data
    prompt_token_ids: list[int]
    finished: bool = True
    late_chunking: Optional[LateChunkingMetadata] = None  # chunks of the outputs' rows


def _vector(encoded: str) -> list[float]:
    vector = array.array("f")
    vector.frombytes(base64.b64decode(encoded))
    return vector.tolist()


def pooled(item: dict[str, Any]) -> PoolingOutput:
    return PoolingOutput(Numbers(_vector(item["data"])))


def rows(item: dict[str, Any]) -> PoolingOutput:
    """Reads a list with a vector or a number for each token, or for each chunk."""
    return PoolingOutput(Numbers(item["data"] if "data" in item else item["embedding"]))


def _chunks(item: dict[str, Any]) -> Optional[LateChunkingMetadata]:
    found = item.get("late_chunking")
    if found is None:
        return None
    chunks = [LateChunk(tuple(chunk["token_range"]), chunk["char_range"] and tuple(chunk["char_range"]))
              for chunk in found["chunks"]]
    return LateChunkingMetadata(**{**found, "chunks": chunks})


def embedding(item: dict[str, Any]) -> EmbeddingOutput:
    return EmbeddingOutput(_vector(item["embedding"]))


def classification(item: dict[str, Any]) -> ClassificationOutput:
    return ClassificationOutput(item["probs"], item["label"])


def scoring(item: dict[str, Any]) -> ScoringOutput:
    return ScoringOutput(item["score"])


class Reading:
    """Receives the result of one text."""

    def __init__(self, request_id: str, read: Any):
        self._request_id = request_id
        self._read = read  # one of the functions above

    def take(self, piece: Piece) -> PoolingRequestOutput:
        if piece.finish_reason != "stop":
            raise OctavoError(piece.error or "the request ended before the whole text was read")
        (item,) = json.loads(piece.text)["data"]
        return PoolingRequestOutput(self._request_id, self._read(item), piece.prompt_token_ids or [],
                                    late_chunking=_chunks(item))


EmbeddingRequestOutput = PoolingRequestOutput[EmbeddingOutput]
ClassificationRequestOutput = PoolingRequestOutput[ClassificationOutput]
ScoringRequestOutput = PoolingRequestOutput[ScoringOutput]
