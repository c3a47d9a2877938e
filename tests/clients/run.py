"""The clients that people use, unchanged, each over every route that it covers:

    .venv/bin/python tests/clients/run.py [--folder DIR] [NAME ...]

OpenAI's for Node and Go, Anthropic's for Node, Vercel's AI SDK, LiteLLM, LangChain, instructor; Python's clients of OpenAI and
Anthropic are in tests/e2e. Their packages, the newest, are installed into the folder (a scratch one, unless given); a client
whose tool (npm, go) is not there is skipped. Three servers are started: one writes, one reads (vectors), one hears.
"""

import argparse
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.append(str(ROOT / "tests/e2e"))

from conftest import running  # noqa: E402
from test_embeddings import folder_of  # noqa: E402

NODE = ["openai", "@anthropic-ai/sdk", "ai", "@ai-sdk/openai-compatible", "zod"]
PYTHON = ["litellm", "mcp", "langchain-openai", "langchain-anthropic", "instructor"]
CLIENTS = {
    "openai-node": ("npm", "openai_node.mjs"),
    "anthropic-node": ("npm", "anthropic_node.mjs"),
    "vercel-ai": ("npm", "vercel_ai.mjs"),
    "openai-go": ("go", "go/main.go"),
    "litellm": (sys.executable, "litellm_client.py"),
    "langchain": (sys.executable, "langchain_client.py"),
    "instructor": (sys.executable, "instructor_client.py"),
}
MODELS = {
    "WRITES": ["models/demo", "--enable-auto-tool-choice", "--tool-call-parser", "hermes"],
    "READS": ["{reads}", "--dtype", "float32"],
    "HEARS": ["tests/data/sound/whisper", "--dtype", "float32"],
}


def do(*command, **more):
    subprocess.run([str(part) for part in command], check=True, **more)


def command_of(name, folder):
    """The command that runs a client, with its packages in the folder. None: its tool is missing."""
    tool, program = CLIENTS[name]
    if not shutil.which(tool):
        return None
    at = folder / {"npm": "node", "go": "go"}.get(tool, "python")
    fresh = not at.exists()
    at.mkdir(parents=True, exist_ok=True)
    if tool == "npm":
        if fresh:
            do("npm", "install", "--no-audit", "--no-fund", "--prefix", at, *NODE)
        return ["node", shutil.copy(HERE / program, at)]
    if tool == "go":
        shutil.copy(HERE / program, at)
        if fresh:
            do("go", "mod", "init", "clients", cwd=at)
            do("go", "mod", "tidy", cwd=at)
        do("go", "build", "-o", "client", ".", cwd=at)
        return [at / "client"]
    if fresh:
        do(sys.executable, "-m", "venv", at)
        do(at / "bin/pip", "install", "--quiet", *PYTHON)
    return [at / "bin/python", HERE / program]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("name", nargs="*", help=", ".join(CLIENTS))
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = options.folder or pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        environment = dict(os.environ, LITELLM_LOCAL_MODEL_COST_MAP="True", SOUND=str(ROOT / "tests/data/sound/chirp.wav"))
        os.chdir(ROOT)
        reads = folder_of("roberta", pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory())))
        for name, flags in MODELS.items():
            flags = " ".join(flags).replace("{reads}", str(reads))
            command = f"build/release/octavo serve --port {{port}} --served-model-name {name.lower()} --model {flags}"
            environment[name] = stack.enter_context(running(command))[1]
        failed = []
        for name in options.name or CLIENTS:
            command = command_of(name, folder.resolve())
            if command is None:
                print(f"{name}: skipped, {CLIENTS[name][0]} is not there")
                continue
            print(f"{name}: ", end="", flush=True)
            if subprocess.run([str(part) for part in command], env=environment).returncode != 0:
                failed.append(name)
        if failed:
            sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
