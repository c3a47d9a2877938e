"""tools/vllm_surface.py with a small package in vLLM's layout."""

import subprocess
import sys

FILES = {
    "vllm/engine/arg_utils.py": """
class EngineArgs:
    @staticmethod
    def add_cli_args(parser):
        group = parser.add_argument_group("Model")
        group.add_argument("--max-model-len", **kwargs["max_model_len"])
        group.add_argument("--quantization", "-q", **kwargs["quantization"])
    def other(parser):
        parser.add_argument("--of-another-program")
""",
    "vllm/entrypoints/common/cli_args.py": """
class BaseFrontendArgs:
    chat_template: str | None = None
    new_switch: bool = False
def make_arg_parser(parser):
    parser.add_argument("--headless", action="store_true")
""",
    "vllm/entrypoints/openai/api_router.py": """
@router.post("/v1/chat/completions", dependencies=[])
async def chat(): ...
@router.get("/v1/responses/{response_id}")
async def response(): ...
@router.post("/weight_checker")
async def weights(): ...
@router.websocket("/v1/next")
async def new(): ...
router.add_api_route("/tokenize", tokenize, methods=["POST"])
""",
    "vllm/entrypoints/cli/preload.py": '@app.get("/not-a-route-of-serve")\nasync def other(): ...\n',
}


def compare(folder, *flags):
    command = [sys.executable, "tools/vllm_surface.py", str(folder), *flags]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def write(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def test_what_is_unknown_is_listed(tmp_path):
    write(tmp_path, FILES)
    done = compare(tmp_path)
    assert done.returncode == 1, done.stderr
    assert done.stdout.splitlines() == ["| `--new-switch` | unknown |", "flags: 5; unknown 1, works 4",
                                        "| `WEBSOCKET /v1/next` | unknown |", "routes: 5; refused 1, unknown 1, works 3"]
    every = compare(tmp_path, "--all").stdout
    assert "| `--quantization` | works |" in every and "| `POST /weight_checker` | refused: weights" in every


def test_known_flags_and_routes_are_accounted_for(tmp_path):
    known = {name: text.replace("    new_switch: bool = False\n", "").replace('@router.websocket("/v1/next")\nasync def new(): ...\n', "")
             for name, text in FILES.items()}
    write(tmp_path, known)
    assert compare(tmp_path).returncode == 0


def test_a_package_of_another_layout_is_refused(tmp_path):
    write(tmp_path, {"vllm/entrypoints/a.py": ""})
    done = compare(tmp_path)
    assert done.returncode == 1 and "vLLM has moved them" in done.stderr
