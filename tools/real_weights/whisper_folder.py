"""Writes CTranslate2's Whisper models, which Python packages contain, as folders of transformers."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

TYPES = [np.float32, np.int8, np.int16, np.int32, np.float16]
LAYER = {
    "self_attention/layer_norm": "self_attn_layer_norm",
    "self_attention/linear_1": "self_attn.out_proj",
    "attention/layer_norm": "encoder_attn_layer_norm",
    "attention/linear_0": "encoder_attn.q_proj",
    "attention/linear_2": "encoder_attn.out_proj",
    "ffn/layer_norm": "final_layer_norm",
    "ffn/linear_0": "fc1",
    "ffn/linear_1": "fc2",
}
FUSED = {
    "self_attention/linear_0": [f"self_attn.{part}_proj" for part in "qkv"],
    "attention/linear_1": [f"encoder_attn.{part}_proj" for part in "kv"],
}
PARTS = {"gamma": "weight", "beta": "bias"}
OTHERS = {
    "embeddings/weight": "embed_tokens.weight",
    "position_encodings/encodings": "embed_positions.weight",
    "layer_norm/gamma": "layer_norm.weight",
    "layer_norm/beta": "layer_norm.bias",
}
MELS = 80
MULTILINGUAL_VOCAB = 51865  # English-only models have one token less


class Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def number(self, form: str) -> int:
        (value,) = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return value

    def bytes(self, count: int) -> bytes:
        self.at += count
        return self.data[self.at - count : self.at]

    def text(self) -> str:
        return self.bytes(self.number("H")).rstrip(b"\0").decode()


def variables(path: Path) -> dict[str, np.ndarray]:
    """Reads model.bin: version, name of the network, its revision, and the variables."""
    reader = Reader(path.read_bytes())
    reader.number("I"), reader.text(), reader.number("I")
    found = {}
    for _ in range(reader.number("I")):
        name = reader.text()
        shape = [reader.number("I") for _ in range(reader.number("B"))]
        kind = TYPES[reader.number("B")]
        found[name] = np.frombuffer(reader.bytes(reader.number("I")), kind).reshape(shape)
    return found


def tensors(stored: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns the tensors with transformers' names. Its keys have no bias; CTranslate2's have zeros."""
    made = {}
    for name, numbers in stored.items():
        half, rest = name.split("/", 1)
        if numbers.ndim == 0 or half not in ("encoder", "decoder") or rest.startswith("alignment"):
            continue
        prefix = f"model.{half}."
        if not rest.startswith("layer_") or rest.startswith("layer_norm"):
            made[prefix + OTHERS.get(rest, rest.replace("/", "."))] = numbers
            continue
        layer, module, part = rest[len("layer_") :].split("/", 1)[0], *rest.split("/", 1)[1].rsplit("/", 1)
        prefix += f"layers.{layer}."
        if module in LAYER:
            made[f"{prefix}{LAYER[module]}.{PARTS.get(part, part)}"] = numbers
            continue
        targets = FUSED[module]
        for target, rows in zip(targets, np.split(numbers, len(targets))):
            if not (part == "bias" and target.endswith("k_proj")):
                made[f"{prefix}{target}.{part}"] = rows
    return {name: np.ascontiguousarray(numbers) for name, numbers in made.items()}


def write(source: Path, model_bin: Path, out: Path) -> None:
    """Writes the folder. `source` has the package's config.json and tokenizer.json."""
    stored = variables(model_bin)
    made = tensors(stored)
    out.mkdir(parents=True, exist_ok=True)
    save_file(made, out / "model.safetensors")
    added = {token["content"]: token["id"] for token in json.loads((source / "tokenizer.json").read_text())["added_tokens"]}
    end, packaged = added["<|endoftext|>"], json.loads((source / "config.json").read_text())
    halves = {}
    for half in ("encoder", "decoder"):
        halves |= {
            f"{half}_layers": 1 + max(int(n.split(".")[3]) for n in made if n.startswith(f"model.{half}.layers.")),
            f"{half}_attention_heads": int(stored[f"{half}/num_heads"]),
            f"{half}_ffn_dim": len(made[f"model.{half}.layers.0.fc1.weight"]),
        }
    vocab, width = made["model.decoder.embed_tokens.weight"].shape
    config = halves | {
        "architectures": ["WhisperForConditionalGeneration"], "model_type": "whisper", "is_encoder_decoder": True,
        "d_model": width, "vocab_size": vocab, "num_mel_bins": MELS, "activation_function": "gelu", "torch_dtype": "float16",
        "scale_embedding": False, "tie_word_embeddings": True,
        "max_source_positions": len(made["model.encoder.embed_positions.weight"]),
        "max_target_positions": len(made["model.decoder.embed_positions.weight"]),
        "bos_token_id": end, "eos_token_id": end, "pad_token_id": end, "decoder_start_token_id": added["<|startoftranscript|>"],
    }
    rules = {"suppress_tokens": packaged["suppress_ids"], "begin_suppress_tokens": packaged["suppress_ids_begin"], "eos_token_id": end,
             "is_multilingual": vocab >= MULTILINGUAL_VOCAB}
    sound = {"feature_extractor_type": "WhisperFeatureExtractor", "feature_size": MELS, "sampling_rate": 16000, "hop_length": 160, "n_fft": 400,
             "chunk_length": 30, "n_samples": 480000, "nb_max_frames": 3000, "padding_value": 0.0}
    for name, fields in (("config.json", config), ("generation_config.json", rules), ("preprocessor_config.json", sound)):
        (out / name).write_text(json.dumps(fields, indent=1))
    shutil.copy(source / "tokenizer.json", out)
