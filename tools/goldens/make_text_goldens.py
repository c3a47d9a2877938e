"""Makes tests/data/text: small tokenizers of every kind and the Python packages' results with them, and chats rendered
by transformers.

    python tools/goldens/make_text_goldens.py [--retrain]          (transformers, tokenizers and sentencepiece installed)

The tokenizers are trained here, on the few lines below, with the pipelines of the named models. Training resolves
ties at random, so existing tokenizers are kept unless --retrain is given.
"""

import collections
import io
import json
import math
import pathlib
import random
import re
import sys
import types

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
import transformers_render
from conversations import CONVERSATIONS, NOW, SPECIAL_TOKENS
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors,
                        trainers)

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "text"

CORPUS = """The quick brown fox jumps over the lazy dog, doesn't it? It's 12:30 and they'll've eaten 1234567 pies.
Once upon a time there was a small house on a hill; in the house lived an old man who told stories to everyone.
def add(first, second):\n    return first + second  # plain code, with    spaces\n\n\n\tif x == 0x1F: print("done")
Größere Übungen: Straße, Äpfel, naïve café, São Paulo, Łódź, İstanbul, ΑΒΓ αβγ, Привет мир, как дела?
你好，世界。今天天气很好，我们去公园玩吧。日本語の文章もここにあります。カタカナとひらがな。한국어 문장입니다.
नमस्ते दुनिया, यह एक वाक्य है। สวัสดีชาวโลก ภาษาไทย. مرحبا بالعالم، كيف حالك؟ שלום עולם. Tiếng Việt rất hay.
Emoji: 😀😃😄 👍🏽 👩‍👩‍👧‍👦 🇩🇪🇫🇷 ❤️ ✅ 🧑🏿‍🚀 and symbols ∑∫√π ≤ ≥ → ← ½ ™ © … — “quotes” ‘single’.
{"name": "Ada", "age": 36, "tags": ["math", "engine"], "nested": {"ok": true, "none": null}}
""".splitlines() * 4

TEXTS = CORPUS[: len(CORPUS) // 4] + [
    "", " ", "  ", "\n", " leading", "trailing ", "a", " a  b   c ", "\t\ttabs\r\nand lines\n\n", "Hello world!",
    "unseen: ᚠᚢᚦ ꙮ 𝔘𝔫𝔦 🫠🪿", "e\u0301 composed é, ﬁ ligature, ＦＵＬＬ width", "\u200b\ufeff zero\u200dwidth", "\x00\x01\x7f control",
    "x" * 200, "<s>written out</s><|end|>", "don't DON'T we're I'd", "3.14159 1,000,000 10-20", "ẞßſ K Å",
    "mixed中文and英文 مع العربية 🎉!", "…" * 20, "🇩🇪" * 10, "[UNK] [CLS] <0x41> ▁under Ġspace",
]

LLAMA3_SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
                r"|\s+(?!\S)|\s+")
QWEN_SPLIT = LLAMA3_SPLIT.replace(r"\p{N}{1,3}", r"\p{N}")


def special(*tokens):
    return [AddedToken(token, special=True, normalized=False) for token in tokens]


def byte_level(vocab_size, pre_tokenizer, normalizer=None, specials=("<|endoftext|>",)):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizer or tokenizer.normalizer
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                  show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.add_special_tokens(special(*specials))
    return tokenizer


def gpt2():
    tokenizer = byte_level(700, pre_tokenizers.ByteLevel(add_prefix_space=False))
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return tokenizer


def llama3():
    split = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3_SPLIT), "isolated"),
                                     pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer = byte_level(700, split, specials=("<|begin_of_text|>", "<|eot_id|>", "<|start_header_id|>"))
    bos = tokenizer.token_to_id("<|begin_of_text|>")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<|begin_of_text|> $A", special_tokens=[("<|begin_of_text|>", bos)])
    return tokenizer


def qwen():
    split = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(QWEN_SPLIT), "isolated"),
                                     pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer = byte_level(700, split, normalizers.NFC(), ("<|endoftext|>", "<|im_start|>", "<|im_end|>"))
    tokenizer.add_tokens([AddedToken("<tool_call>", special=False, normalized=False),
                          AddedToken("</tool_call>", special=False, normalized=False)])
    return tokenizer


def sentencepiece_bpe(vocab_size, alphabet_limit):
    """Returns a SentencePiece-like BPE model: <unk> <s> </s>, 256 byte tokens, then the pieces."""
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    trained.train_from_iterator(CORPUS, trainers.BpeTrainer(
        vocab_size=vocab_size, limit_alphabet=alphabet_limit, show_progress=False))
    model = json.loads(trained.to_str())["model"]
    pieces = sorted(model["vocab"], key=model["vocab"].get)
    names = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    names += [piece for piece in pieces if piece not in names]
    merges = [tuple(merge) for merge in model["merges"]]
    return models.BPE({name: at for at, name in enumerate(names)}, merges, unk_token="<unk>", byte_fallback=True,
                      fuse_unk=True)


def frame_with_bos(tokenizer):
    tokenizer.add_special_tokens(special("<unk>", "<s>", "</s>"))
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return tokenizer


def llama2():
    tokenizer = Tokenizer(sentencepiece_bpe(500, 60))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                           decoders.Strip(" ", 1, 0)])
    return frame_with_bos(tokenizer)


def mistral():
    tokenizer = Tokenizer(sentencepiece_bpe(500, 60))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="first", split=False)
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                           decoders.Strip(" ", 1, 0)])
    return frame_with_bos(tokenizer)


def gemma():
    tokenizer = Tokenizer(sentencepiece_bpe(500, 60))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    return frame_with_bos(tokenizer)


def t5():
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    tokenizer.train_from_iterator(CORPUS, trainers.UnigramTrainer(
        vocab_size=500, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>", show_progress=False))
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return tokenizer


# Some of the many thousand lines of XLM-R's normalization: characters and their replacements.
RULES = {"\t": " ", "\n": " ", "\r": " ", "\u3000": " ", "\u200b": "", "\ufeff": "", "\x01": "", "\x7f": "", "e\u0301": "é", "ﬁ": "fi", "½": "1⁄2", "…": "..."} | {
    chr(0xFEE0 + code): chr(code) for code in range(0x21, 0x7F)}


def xlmr():
    """Trains with SentencePiece, and converts the result to tokenizers' format as transformers does."""
    lines = OUT / "rules.tsv"
    codes = lambda text: " ".join(f"{ord(letter):X}" for letter in text)
    lines.write_text("".join(f"{codes(source)}\t{codes(target)}\n" for source, target in sorted(RULES.items())))
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS), model_writer=written, vocab_size=500, hard_vocab_limit=False, character_coverage=0.98, normalization_rule_tsv=str(lines),
        minloglevel=2)
    lines.unlink()
    pieces = sentencepiece.SentencePieceProcessor(model_proto=written.getvalue())
    model = sentencepiece_model_pb2.ModelProto.FromString(written.getvalue())
    names = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    names += [(pieces.id_to_piece(i), pieces.get_score(i)) for i in range(3, pieces.get_piece_size())] + [("<mask>", 0.0)]
    tokenizer = Tokenizer(models.Unigram(names, unk_id=3, byte_fallback=False))
    tokenizer.normalizer = normalizers.Precompiled(model.normalizer_spec.precompiled_charsmap)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")])
    tokenizer.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    tokenizer.add_special_tokens(special("<s>", "<pad>", "</s>", "<unk>", "<mask>"))
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    for text in TEXTS:
        ids = [i + 1 if i > 2 else 3 for i in pieces.encode(text)]
        if "<" not in text and ids != tokenizer.encode(text, add_special_tokens=False).ids:
            print(f"xlmr: SentencePiece reads {text!r} as {ids}, tokenizers as {tokenizer.encode(text, add_special_tokens=False).ids}")
    return tokenizer


def bert():
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix="##")
    tokenizer.train_from_iterator(CORPUS, trainers.WordPieceTrainer(
        vocab_size=700, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], show_progress=False))
    cls, sep = tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id("[SEP]")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", cls), ("[SEP]", sep)])
    return tokenizer


def gpt1():
    """Returns a BPE with a mark for the end of words, whose decoder depends on the last token: only whole sequences
    can be decoded."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.BPEDecoder(suffix="</w>")
    tokenizer.train_from_iterator(CORPUS, trainers.BpeTrainer(
        vocab_size=600, special_tokens=["<unk>"], end_of_word_suffix="</w>", show_progress=False))
    return tokenizer


# Marks as text, repetitions, and segmentations of equal cost.
PLAMO_TEXTS = ["aaaa", "aaa aa", "   x", "a     b", "e e e e", "the the the the", "<|plamo:eos|>", "x<|plamo:msg|>y", "<|plamo:|>", "<|plamo:two words|>", "<|plamo:aaaa|>bbbbbb",
               "<|plamo:" + "m" * 64 + "|>.", "<|plamo:" + "m" * 65 + "|>.", "<|plamo:<|plamo:chat|>", "\n\n\n\n\n", "pre\uee00fix", "\uee00", "     \uee00  "]


class Plamo:
    """PLaMo's segmentation as in its models' code: among the segmentations of least cost, the one with the longest
    first token, and so on."""
    BREAK = "\uee00"

    def __init__(self, directory):
        self.rows = [json.loads(line) for line in (directory / "tokenizer.jsonl").read_text().splitlines()]
        config = json.loads((directory / "tokenizer_config.json").read_text())
        self.ids = {token: i for i, (token, _, kind) in enumerate(self.rows) if kind != "BYTE"}
        self.bytes = {int(token[3:5], 16): i for i, (token, _, kind) in enumerate(self.rows) if kind == "BYTE"}
        self.special = [token for token, _, kind in self.rows if kind == "CONTROL" or token.startswith("<|plamo:")]
        self.longest = max(map(len, self.ids))
        self.begin = [self.ids[config["bos_token"]]] if config["add_bos_token"] else []
        runs = [rf"(.)\2{{{config['break_around_repeated_chars_threshold'] - 1},}}", f" {{{config['break_around_consecutive_spaces_threshold']},}}"] if "3" in config["tokenizer_class"] else []
        self.cuts = [re.compile(r"(<\|plamo:[^|\s]{,64}\|>)"), re.compile(f"({'|'.join(runs)})")] if runs else []
        # Decoding is that of tokenizers.
        self.tokenizers = Tokenizer(models.Unigram([(token, score) for token, score, _ in self.rows], unk_id=0, byte_fallback=True))
        self.tokenizers.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
        self.tokenizers.add_special_tokens(special(*self.special))
        self.get_vocab, self.get_vocab_size, self.decode = self.tokenizers.get_vocab, self.tokenizers.get_vocab_size, self.tokenizers.decode

    def segment(self, text):
        best = [(0, [])]  # for each suffix of the text: cost and tokens
        for at in reversed(range(len(text))):
            ways = [(best[length - 1][0] - round(1e4 * self.rows[self.ids[text[at:at + length]]][1]), -length, [self.ids[text[at:at + length]]] + best[length - 1][1])
                    for length in range(1, min(self.longest, len(text) - at) + 1) if text[at:at + length] in self.ids]
            ways.append((best[0][0] + 10**7, 0, [self.bytes[byte] for byte in text[at].encode()] + best[0][1]))
            cost, _, tokens = min(ways)
            best.insert(0, (cost, tokens))
        return best[0][1]

    def encode(self, text, add_special_tokens):
        ids = list(self.begin) if add_special_tokens else []
        for part in re.split(f"({'|'.join(map(re.escape, sorted(self.special, key=len, reverse=True)))})", text):
            if part in self.special:
                ids.append(self.ids[part])
                continue
            for cut in self.cuts:
                part = cut.sub(rf"{self.BREAK}\1{self.BREAK}", part)
            for piece in part.split(self.BREAK) if self.cuts else [part]:
                ids += self.segment(piece)
        return types.SimpleNamespace(ids=ids)


def plamo(directory, generation):
    """Scores are logarithms of the frequencies of pieces in the corpus. Many of them are equal."""
    counts = collections.Counter(line[at:at + length] for line in CORPUS for at in range(len(line)) for length in range(1, 7) if at + length <= len(line))
    counts |= {" " * length: 40 // length for length in range(1, 5)} | {"a" * length: 60 // length for length in range(1, 5)}
    pieces = sorted((piece for piece, count in counts.items() if count >= 8), key=lambda piece: (-counts[piece] * len(piece), piece))[:500]
    total = sum(counts[piece] for piece in pieces)
    rows = [["<|plamo:unk|>", 0.0, "UNKNOWN"], *(["<|plamo:%s|>" % name, 0.0, "CONTROL"] for name in ("bos", "eos", "pad")), ["<|plamo:msg|>", 0.0, "NORMAL"],
            *([f"<0x{byte:02X}>", 0.0, "BYTE"] for byte in range(256)), *([piece, round(math.log(counts[piece] / total), 5), "NORMAL"] for piece in pieces)]
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "tokenizer.jsonl").write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    config = {"tokenizer_class": f"Plamo{generation}Tokenizer", "add_bos_token": generation == 3, "add_eos_token": False, "unk_token": "<|plamo:unk|>", "bos_token": "<|plamo:bos|>",
              "eos_token": "<|plamo:eos|>", "pad_token": "<|plamo:pad|>"}
    if generation == 3:
        config |= {"break_around_consecutive_spaces_threshold": 2, "break_around_repeated_chars_threshold": 4}
    (directory / "tokenizer_config.json").write_text(json.dumps(config, indent=1) + "\n")


def write_json(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n")


def random_ids(tokenizer, rng):
    """Returns random ids: from the whole vocabulary, sequences of bytes, special tokens, and a few above the end."""
    size = tokenizer.get_vocab_size()
    length = rng.randrange(1, 24)
    if rng.random() < 0.5:
        return [rng.randrange(size + 3) for _ in range(length)]
    low = rng.randrange(min(size, 260))
    return [min(low + rng.randrange(60), size + 2) for _ in range(length)]


def tokenizer_golden(name, tokenizer, more=()):
    rng = random.Random(name)
    encodings = []
    for text in (*TEXTS, *more):
        ids = tokenizer.encode(text, add_special_tokens=True).ids
        plain = tokenizer.encode(text, add_special_tokens=False).ids
        encodings.append({"text": text, "ids": ids, "plain_ids": plain, "decoded": tokenizer.decode(ids, False),
                          "decoded_plain": tokenizer.decode(ids, True)})
    decodings = []
    for _ in range(200):
        ids, skip = random_ids(tokenizer, rng), rng.random() < 0.5
        decodings.append({"ids": ids, "skip": skip, "text": tokenizer.decode(ids, skip)})
    write_json(OUT / "tokenizers" / name / "expected.json", {
        "vocab_size": max(tokenizer.get_vocab(True).values()) + 1, "encodings": encodings, "decodings": decodings})


def chat_goldens():
    for path in sorted((OUT / "templates").glob("*.jinja")):
        source = path.read_text()
        expected = [transformers_render.render(
            {"template": source, "special_tokens": SPECIAL_TOKENS, "now": NOW, **conversation})
            for conversation in CONVERSATIONS]
        write_json(OUT / "expected" / f"{path.stem}.json", expected)
    write_json(OUT / "conversations.json", {
        "now": NOW, "special_tokens": SPECIAL_TOKENS, "conversations": CONVERSATIONS})


def main():
    for build in (gpt2, llama3, qwen, llama2, mistral, gemma, t5, xlmr, bert, gpt1):
        path = OUT / "tokenizers" / build.__name__ / "tokenizer.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        if "--retrain" in sys.argv or not path.exists():
            build().save(str(path), pretty=False)
        tokenizer_golden(build.__name__, Tokenizer.from_file(str(path)))
    for generation in (2, 3):
        path = OUT / "tokenizers" / f"plamo{generation}"
        plamo(path, generation)
        tokenizer_golden(path.name, Plamo(path), PLAMO_TEXTS)
    chat_goldens()


if __name__ == "__main__":
    main()
