#!/usr/bin/env python3
"""Makes tests/data/sound/: small random audio models, some audio files, and transformers' results with them.

Needs torch, transformers, tokenizers, soundfile and numpy (made with 2.13, 5.23, 0.23, 0.14 and 2.4). Usage:
make_sound_goldens.py OUT_DIR [CASE ...]

OUT_DIR gets audio files (WAV, and the same in other formats). OUT_DIR/whisper is a small random Whisper with its
tokenizer, feature extractor and golden.safetensors:

    mel          F32 [80, 200]        the spectrogram of chirp.wav, computed by numpy in double precision
    mel128       F32 [128, 40]        the first frames of one with 128 bins
    ids          I32 [n]              a prompt and text after it
    logits       F32 [n, vocab]       of all tokens
    suppressed   I32 [k]              tokens that generate() must not output
    greedy       I32 [m]              its output, without timestamps
    translated   I32 [m]              its output for the task "translate", with a language that it detects
    language     I32 [1]              the token of that language

OUT_DIR/qwen2_audio is a small random Qwen2-Audio with its chat template. Its golden.safetensors:

    mel.NAME     F32 [80, 200]        the spectrogram of NAME
    rows.NAME    F32 [tokens, dim]    its rows in the language model's input
    frames       I32 [2]              number of frames of chirp.wav and short.wav that begin within them
    ids          I32 [n]              a conversation about the two
    logits       F32 [60, vocab]      of its last 60 tokens
    answer       I32 [12]             the model's greedy answer

OUT_DIR/audioflamingo3 is a small random Audio Flamingo 3, with the same files.

OUT_DIR/voxtral is a small random Voxtral; long.wav has two windows. Its golden.safetensors:

    mel.NAME.I   F32 [80, 200]        window I of the spectrogram of NAME (long.wav, short.wav)
    rows.NAME.I  F32 [25, dim]        its rows in the language model's input
    ids, logits, answer               as above

Everything is computed in f32. Weights are stored in bf16. A window has 2 seconds, which are 100 rows.
"""
import os
import shutil
import sys

import numpy
import soundfile
import tokenizers
import torch
import transformers
from safetensors.torch import save_file

LANGUAGES = ["en", "zh", "de", "es"]
SECONDS = 2
ROWS = 50 * SECONDS
RATE = 16000


def chirp(seconds, rate, seed=0):
    """Returns rising tones with noise and a pause, so that all frames are different."""
    t = numpy.arange(int(seconds * rate)) / rate
    tones = 0.3 * numpy.sin(2 * numpy.pi * (200 * t + 900 * t * t)) + 0.1 * numpy.sin(2 * numpy.pi * 3100 * t)
    noise = numpy.random.default_rng(seed).normal(0, 0.02, t.shape)
    loud = numpy.where((t > 0.4 * seconds) & (t < 0.5 * seconds), 0.01, 1.0)
    return ((tones + noise) * loud).astype(numpy.float32)


def write_sounds(directory):
    soundfile.write(f"{directory}/chirp.wav", chirp(1.3, RATE), RATE, subtype="PCM_16")
    soundfile.write(f"{directory}/long.wav", numpy.concatenate([chirp(1.3, RATE), 0.5 * chirp(1.9, RATE, 5)]), RATE, subtype="PCM_16")
    soundfile.write(f"{directory}/short.wav", chirp(0.7101, RATE, 3), RATE, subtype="PCM_16")
    short = chirp(0.25, 44100)
    stereo = numpy.stack([short, 0.5 * short], axis=1)
    soundfile.write(f"{directory}/stereo.flac", stereo, 44100, subtype="PCM_16")
    soundfile.write(f"{directory}/short.ogg", short, 44100, format="OGG", subtype="VORBIS")
    soundfile.write(f"{directory}/short.opus", chirp(0.25, 48000), 48000, format="OGG", subtype="OPUS")
    soundfile.write(f"{directory}/short.mp3", short, 44100, format="MP3")


def write_tokenizer(directory):
    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: i for i, letter in enumerate(letters)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    special = ["<|endoftext|>", "<|startoftranscript|>"] + [f"<|{language}|>" for language in LANGUAGES]
    special += ["<|translate|>", "<|transcribe|>", "<|startoflm|>", "<|startofprev|>", "<|nospeech|>", "<|notimestamps|>"]
    tokenizer.add_special_tokens([tokenizers.AddedToken(token, normalized=False, special=True) for token in special])
    times = [f"<|{i * 0.02:.2f}|>" for i in range(50 * SECONDS + 1)]
    tokenizer.add_tokens([tokenizers.AddedToken(token, normalized=False, special=False) for token in times])
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<|endoftext|>", eos_token="<|endoftext|>",
                                                pad_token="<|endoftext|>")
    fast.save_pretrained(directory)
    return fast


def randomise(model):
    with torch.no_grad():
        for name, p in model.named_parameters():
            if "norm" in name and name.endswith("weight"):
                p.copy_(1 + 0.3 * torch.randn_like(p))
            # otherwise the model would repeat one token
            elif "embed_tokens" in name or "embed_positions" in name:
                p.copy_((0.25 if "tokens" in name else 0.5) * torch.randn_like(p))
            else:
                p.copy_((0.3 if p.dim() == 1 else 0.25) * torch.randn_like(p))


def make(directory, sound):
    torch.manual_seed(0)
    os.makedirs(directory)
    tokenizer = write_tokenizer(directory)
    token = tokenizer.convert_tokens_to_ids
    end = token("<|endoftext|>")
    config = transformers.WhisperConfig(
        vocab_size=len(tokenizer) + 3, d_model=48, encoder_layers=2, decoder_layers=3, encoder_attention_heads=2,
        decoder_attention_heads=3, encoder_ffn_dim=72, decoder_ffn_dim=80, num_mel_bins=80, max_source_positions=ROWS,
        max_target_positions=90, pad_token_id=end, bos_token_id=end, eos_token_id=end,
        decoder_start_token_id=token("<|startoftranscript|>"), suppress_tokens=None, begin_suppress_tokens=None)
    model = transformers.WhisperForConditionalGeneration(config).eval()
    randomise(model)
    rules = transformers.GenerationConfig(
        is_multilingual=True, lang_to_id={f"<|{language}|>": token(f"<|{language}|>") for language in LANGUAGES},
        task_to_id={task: token(f"<|{task}|>") for task in ("transcribe", "translate")},
        no_timestamps_token_id=token("<|notimestamps|>"), decoder_start_token_id=token("<|startoftranscript|>"),
        prev_sot_token_id=token("<|startofprev|>"), pad_token_id=end, bos_token_id=end, eos_token_id=end, max_length=90,
        max_initial_timestamp_index=50, suppress_tokens=SUPPRESSED, begin_suppress_tokens=[SPACE, end], return_timestamps=False)
    model.generation_config = rules
    model.to(torch.bfloat16).save_pretrained(directory)
    features = transformers.WhisperFeatureExtractor(feature_size=80, chunk_length=SECONDS)
    features.save_pretrained(directory)

    wide = transformers.WhisperForConditionalGeneration.from_pretrained(directory, dtype=torch.float32).eval()
    window = numpy.zeros(SECONDS * RATE, dtype=numpy.float32)
    window[: len(sound)] = sound
    mel = torch.from_numpy(features._np_extract_fbank_features(window[None], "cpu")[0].astype(numpy.float32))
    more = transformers.WhisperFeatureExtractor(feature_size=128, chunk_length=SECONDS)._np_extract_fbank_features(window[None], "cpu")[0]
    text = tokenizer("Tone, up & down.")["input_ids"]
    prompt = [token(f"<|{name}|>") for name in ("startoftranscript", "de", "transcribe", "notimestamps")]
    ids = torch.tensor([prompt + text + [end]])
    common = dict(max_new_tokens=40, do_sample=False, num_beams=1)
    with torch.no_grad():
        logits = wide(input_features=mel[None], decoder_input_ids=ids).logits[0]
        greedy = wide.generate(mel[None], language="de", task="transcribe", **common)[0]
        translated = wide.generate(mel[None], task="translate", **common)[0]
        language = wide.detect_language(mel[None])
    golden = {"mel": mel, "mel128": torch.from_numpy(more[:, :40].astype(numpy.float32).copy()), "suppressed": torch.tensor(SUPPRESSED, dtype=torch.int32), "ids": ids[0].to(torch.int32),
              "logits": logits, "greedy": greedy.to(torch.int32), "translated": translated.to(torch.int32), "language": language.to(torch.int32)}
    print(tokenizer.decode(greedy), greedy.tolist(), translated.tolist(), language)
    save_file({name: tensor.contiguous() for name, tensor in golden.items()}, f"{directory}/golden.safetensors")


CHAT = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{% if message['content'] is string %}{{ message['content'] }}{% else %}"
    "{% for part in message['content'] %}{% if part['type'] == 'audio' %}<|audio_bos|><|AUDIO|><|audio_eos|>\n{% else %}{{ part['text'] }}{% endif %}"
    "{% endfor %}{% endif %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def write_chat_tokenizer(directory):
    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocab={letter: i for i, letter in enumerate(letters)}, merges=[]))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    special = ["<|im_start|>", "<|im_end|>", "<|audio_bos|>", "<|AUDIO|>", "<|audio_eos|>"]
    tokenizer.add_special_tokens([tokenizers.AddedToken(token, normalized=False, special=True) for token in special])
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|im_end|>")
    fast.chat_template = CHAT
    fast.save_pretrained(directory)
    return fast


def audio_flamingo(tokenizer, features):
    config = transformers.AudioFlamingo3Config(
        audio_config=dict(model_type="audioflamingo3_encoder", hidden_size=48, num_hidden_layers=2, num_attention_heads=2, intermediate_size=72,
                          num_mel_bins=80, max_source_positions=ROWS),
        text_config=dict(model_type="qwen2", vocab_size=272, hidden_size=72, intermediate_size=80, num_hidden_layers=2, num_attention_heads=3,
                         num_key_value_heads=1, max_position_embeddings=512, eos_token_id=257, pad_token_id=257),
        audio_token_id=tokenizer.convert_tokens_to_ids("<|AUDIO|>"))
    return transformers.AudioFlamingo3ForConditionalGeneration, config, transformers.AudioFlamingo3Processor(
        features, tokenizer, chat_template=CHAT, audio_token="<|AUDIO|>")


def qwen_audio(tokenizer, features):
    config = transformers.Qwen2AudioConfig(
        audio_config=dict(model_type="qwen2_audio_encoder", d_model=48, encoder_layers=2, encoder_attention_heads=2, encoder_ffn_dim=72,
                          num_mel_bins=80, max_source_positions=ROWS),
        text_config=dict(model_type="qwen2", vocab_size=272, hidden_size=72, intermediate_size=80, num_hidden_layers=2, num_attention_heads=3,
                         num_key_value_heads=1, max_position_embeddings=512, eos_token_id=257, pad_token_id=257),
        audio_token_index=tokenizer.convert_tokens_to_ids("<|AUDIO|>"))
    return transformers.Qwen2AudioForConditionalGeneration, config, transformers.Qwen2AudioProcessor(features, tokenizer, chat_template=CHAT)


def inputs_of(processor, text, sounds):
    """AudioFlamingo3Processor permits one sound in a text, so the sounds are prepared separately."""
    if not isinstance(processor, transformers.AudioFlamingo3Processor):
        return processor(text=text, audio=sounds, sampling_rate=RATE, return_tensors="pt")
    token = processor.audio_token
    own = [processor(text=token, audio=[sound], return_tensors="pt") for sound in sounds]
    pieces = text.split(token)
    text = "".join(piece + token * one["input_ids"].shape[1] for piece, one in zip(pieces, own)) + pieces[-1]
    return dict(processor.tokenizer(text, return_tensors="pt"), **{
        name: torch.cat([one[name] for one in own]) for name in ("input_features", "input_features_mask")})


def make_chat(directory, sounds, kind):
    torch.manual_seed(0)
    os.makedirs(directory)
    tokenizer = write_chat_tokenizer(directory)
    features = transformers.WhisperFeatureExtractor(feature_size=80, chunk_length=SECONDS, return_attention_mask=True)
    features.save_pretrained(directory)
    model_class, config, processor = kind(tokenizer, features)
    model = model_class(config).eval()
    randomise(model)
    with torch.no_grad():
        for p in model.parameters():
            if p.dim() > 1:
                p.mul_(0.5)
    model.to(torch.bfloat16).save_pretrained(directory)
    wide = model_class.from_pretrained(directory, dtype=torch.float32).eval()
    text = processor.apply_chat_template([
        {"role": "user", "content": [{"type": "audio"}, {"type": "text", "text": "What is this sound?"}]},
        {"role": "assistant", "content": "A chirp."},
        {"role": "user", "content": [{"type": "text", "text": "And this?"}, {"type": "audio"}]}], add_generation_prompt=True, tokenize=False)
    inputs = inputs_of(processor, text, list(sounds.values()))
    mask = inputs["feature_attention_mask" if "feature_attention_mask" in inputs else "input_features_mask"]
    golden = {"ids": inputs["input_ids"][0].to(torch.int32), "frames": mask.sum(-1).to(torch.int32)}
    seen = []  # output of the projector: all rows of a window, of which the first ones are in the prompt
    wide.model.multi_modal_projector.register_forward_hook(lambda module, args, out: seen.append(out))
    with torch.no_grad():
        golden["logits"] = wide(**inputs).logits[0, -60:]
        golden["answer"] = wide.generate(**inputs, max_new_tokens=12, do_sample=False, eos_token_id=None)[0, inputs["input_ids"].shape[1]:].to(torch.int32)
    for i, name in enumerate(sounds):
        padded = numpy.zeros(SECONDS * RATE, dtype=numpy.float32)
        padded[: len(sounds[name])] = sounds[name]
        golden[f"mel.{name}"] = torch.from_numpy(features._np_extract_fbank_features(padded[None], "cpu")[0].astype(numpy.float32))
        golden[f"rows.{name}"] = seen[0][i, : (int(golden["frames"][i]) + 1) // 2 // 2].clone()
    print(tokenizer.decode(golden["answer"]))
    save_file({name: tensor.contiguous() for name, tensor in golden.items()}, f"{directory}/golden.safetensors")


VOXTRAL_CHAT = (
    "<s>{% for message in messages %}{% if message['role'] == 'user' %}[INST]{% endif %}{% if message['content'] is string %}{{ message['content'] }}{% else %}"
    "{% for part in message['content'] %}{% if part['type'] == 'audio' %}[BEGIN_AUDIO][AUDIO]{% else %}{{ part['text'] }}{% endif %}{% endfor %}{% endif %}"
    "{% if message['role'] == 'user' %}[/INST]{% else %}</s>{% endif %}{% endfor %}"
)


def write_voxtral_tokenizer(directory):
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocab={letter: i for i, letter in enumerate(LETTERS)}, merges=[]))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    special = ["<s>", "</s>", "[INST]", "[/INST]", "[AUDIO]", "[BEGIN_AUDIO]"]
    tokenizer.add_special_tokens([tokenizers.AddedToken(token, normalized=False, special=True) for token in special])
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="</s>")
    fast.chat_template = VOXTRAL_CHAT
    fast.save_pretrained(directory)
    return fast


def make_voxtral(directory, sounds):
    torch.manual_seed(0)
    os.makedirs(directory)
    tokenizer = write_voxtral_tokenizer(directory)
    features = transformers.WhisperFeatureExtractor(feature_size=80, chunk_length=SECONDS)
    features.save_pretrained(directory)
    end = tokenizer.convert_tokens_to_ids("</s>")
    config = transformers.VoxtralConfig(
        audio_config=dict(model_type="voxtral_encoder", hidden_size=48, num_hidden_layers=2, num_attention_heads=2, intermediate_size=192,
                          num_mel_bins=80, max_source_positions=ROWS),
        text_config=dict(model_type="llama", vocab_size=272, hidden_size=72, intermediate_size=80, num_hidden_layers=2, num_attention_heads=3,
                         num_key_value_heads=1, head_dim=24, max_position_embeddings=512, eos_token_id=end, pad_token_id=end, bos_token_id=end - 1),
        audio_token_id=tokenizer.convert_tokens_to_ids("[AUDIO]"))
    model = transformers.VoxtralForConditionalGeneration(config).eval()
    randomise(model)
    with torch.no_grad():
        for p in model.parameters():
            if p.dim() > 1:
                p.mul_(0.5)
    model.to(torch.bfloat16).save_pretrained(directory)
    wide = transformers.VoxtralForConditionalGeneration.from_pretrained(directory, dtype=torch.float32).eval()
    golden, windows = {}, []
    for name, sound in sounds.items():
        # As in VoxtralProcessor, except for the conversation's tokens, which mistral_common makes there.
        count = -(-len(sound) // (SECONDS * RATE))
        padded = numpy.zeros(count * SECONDS * RATE, dtype=numpy.float32)
        padded[: len(sound)] = sound
        mel = torch.from_numpy(features._np_extract_fbank_features(padded[None], "cpu")[0].astype(numpy.float32))
        own = mel.reshape(80, -1, 2 * ROWS).transpose(0, 1)
        golden |= {f"mel.{name}.{i}": window for i, window in enumerate(own)}
        windows.append(own)
    text = tokenizer.apply_chat_template([
        {"role": "user", "content": [{"type": "audio"}, {"type": "text", "text": "What is this sound?"}]},
        {"role": "assistant", "content": "A chirp."},
        {"role": "user", "content": [{"type": "text", "text": "And this?"}, {"type": "audio"}]}], tokenize=False)
    pieces = text.split("[AUDIO]")
    text = "".join(piece + "[AUDIO]" * (ROWS // 4 * len(own)) for piece, own in zip(pieces, windows)) + pieces[-1]
    ids = torch.tensor([tokenizer(text, add_special_tokens=False)["input_ids"]])
    inputs = dict(input_ids=ids, input_features=torch.cat(windows), attention_mask=torch.ones_like(ids))
    rows = []
    wide.model.multi_modal_projector.register_forward_hook(lambda module, args, out: rows.append(out))
    with torch.no_grad():
        golden["logits"] = wide(**inputs).logits[0, -60:]
        golden["answer"] = wide.generate(**inputs, max_new_tokens=12, do_sample=False, eos_token_id=None)[0, ids.shape[1]:].to(torch.int32)
    parts = [f"{name}.{i}" for name, own in zip(sounds, windows) for i in range(len(own))]
    golden |= {f"rows.{part}": own.clone() for part, own in zip(parts, rows[0].split(ROWS // 4))}
    golden["ids"] = ids[0].to(torch.int32)
    print(tokenizer.decode(golden["answer"]), parts, ids.shape)
    save_file({name: tensor.contiguous() for name, tensor in golden.items()}, f"{directory}/golden.safetensors")


def make_glmasr(directory, sounds):
    torch.manual_seed(0)
    os.makedirs(directory)
    tokenizer = write_chat_tokenizer(directory)
    features = transformers.WhisperFeatureExtractor(feature_size=80, chunk_length=SECONDS, return_attention_mask=True)
    features.save_pretrained(directory)
    token = tokenizer.convert_tokens_to_ids("<|AUDIO|>")
    config = transformers.GlmAsrConfig(
        audio_config=dict(model_type="glmasr_encoder", hidden_size=48, num_hidden_layers=2, num_attention_heads=2, intermediate_size=192,
                          num_mel_bins=80, max_position_embeddings=ROWS),
        text_config=dict(model_type="llama", vocab_size=272, hidden_size=72, intermediate_size=80, num_hidden_layers=2, num_attention_heads=3,
                         num_key_value_heads=1, max_position_embeddings=512, eos_token_id=257, pad_token_id=257, bos_token_id=256),
        audio_token_id=token)
    model = transformers.GlmAsrForConditionalGeneration(config).eval()
    randomise(model)
    with torch.no_grad():
        for p in model.parameters():
            if p.dim() > 1:
                p.mul_(0.5)
    model.to(torch.bfloat16).save_pretrained(directory)
    wide = transformers.GlmAsrForConditionalGeneration.from_pretrained(directory, dtype=torch.float32).eval()
    processor = transformers.GlmAsrProcessor(features, tokenizer, chat_template=CHAT, audio_token="<|AUDIO|>")
    text = processor.apply_chat_template([
        {"role": "user", "content": [{"type": "audio"}, {"type": "text", "text": "What is this sound?"}]},
        {"role": "assistant", "content": "A chirp."},
        {"role": "user", "content": [{"type": "text", "text": "And this?"}, {"type": "audio"}]}], add_generation_prompt=True, tokenize=False)
    own = [processor(text="<|AUDIO|>", audio=[sound], return_tensors="pt") for sound in sounds.values()]  # one sound in a text
    pieces = text.split("<|AUDIO|>")
    text = "".join(piece + "<|AUDIO|>" * one["input_ids"].shape[1] for piece, one in zip(pieces, own)) + pieces[-1]
    inputs = dict(processor.tokenizer(text, return_tensors="pt"), **{
        name: torch.cat([one[name] for one in own]) for name in ("input_features", "input_features_mask")})
    frames, rows = inputs["input_features_mask"].sum(-1), []
    wide.model.multi_modal_projector.register_forward_hook(lambda module, args, out: rows.append(out))
    golden = {"ids": inputs["input_ids"][0].to(torch.int32), "frames": frames.to(torch.int32)}
    with torch.no_grad():
        golden["logits"] = wide(**inputs).logits[0, -60:]
        golden["answer"] = wide.generate(**inputs, max_new_tokens=12, do_sample=False, eos_token_id=None)[0, inputs["input_ids"].shape[1]:].to(torch.int32)
    parts = [f"{name}.{i}" for name, one in zip(sounds, own) for i in range(len(one["input_features"]))]
    for i, part in enumerate(parts):
        golden[f"mel.{part}"] = inputs["input_features"][i].clone()
        golden[f"rows.{part}"] = rows[0][i, : (int(frames[i]) + 1) // 2 // 4].clone()
    print(tokenizer.decode(golden["answer"]), parts, frames, inputs["input_ids"].shape)
    save_file({name: tensor.contiguous() for name, tensor in golden.items()}, f"{directory}/golden.safetensors")


LETTERS = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
SPACE = LETTERS.index("\u0120")
# All bytes that are not text by themselves, and some that are.
SUPPRESSED = list(range(257, 268)) + [369, 370, 371]  # special tokens, and ids without a token
SUPPRESSED += [i for i, letter in enumerate(LETTERS) if i != SPACE and (not letter.isascii() or letter in "()[]#*")]

if __name__ == "__main__":
    out, wanted = sys.argv[1], sys.argv[2:] or ["whisper", "qwen2_audio", "audioflamingo3", "voxtral", "glmasr"]
    os.makedirs(out, exist_ok=True)
    write_sounds(out)
    samples = {name: soundfile.read(f"{out}/{name}", dtype="float32")[0] for name in ("chirp.wav", "short.wav", "long.wav")}
    for case in wanted:
        shutil.rmtree(f"{out}/{case}", ignore_errors=True)
    if "whisper" in wanted:
        make(f"{out}/whisper", samples["chirp.wav"])
    if "qwen2_audio" in wanted:
        make_chat(f"{out}/qwen2_audio", {name: samples[name] for name in ("chirp.wav", "short.wav")}, qwen_audio)
    if "audioflamingo3" in wanted:
        make_chat(f"{out}/audioflamingo3", {name: samples[name] for name in ("chirp.wav", "short.wav")}, audio_flamingo)
    if "voxtral" in wanted:
        make_voxtral(f"{out}/voxtral", {name: samples[name] for name in ("long.wav", "short.wav")})
    if "glmasr" in wanted:
        make_glmasr(f"{out}/glmasr", {name: samples[name] for name in ("long.wav", "short.wav")})
