#!/bin/sh
# Makes the demo models from nothing: tokenizer, data, training, export, figures. Training continues from
# its last checkpoint, so the script can run again after a stop.
#
#   PYTHON=python3 WORK=demo-work MODELS=models TOKENS=20e6 tools/demo_model/make_demo.sh
#
# A smaller number of TOKENS takes less time and gives a worse model. It is enough to test the script.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
models=${MODELS:-$(cd "$here/../.." && pwd)/models}
tokens=${TOKENS:-20e6}
python=${PYTHON:-python3}
work=${WORK:-demo-work}

mkdir -p "$work" "$models"
[ -f "$work/tokenizer/tokenizer.json" ] || "$python" "$here/train_tokenizer.py" --out "$work/tokenizer"
[ -f "$work/rows/heldout-2048-taught.npy" ] || "$python" "$here/corpus.py" --tokenizer "$work/tokenizer" --out "$work/rows"
"$python" "$here/train.py" main --rows "$work/rows" --checkpoints "$work/checkpoints" --tokens "$tokens"
"$python" "$here/train.py" draft --rows "$work/rows" --checkpoints "$work/checkpoints" --tokens "$tokens"
for model in main draft; do
    out=$models/demo
    [ "$model" = main ] || out=$models/demo-draft
    "$python" "$here/export.py" "$model" --checkpoints "$work/checkpoints" --tokenizer "$work/tokenizer" --out "$out"
    "$python" "$here/evaluate.py" "$out" --rows "$work/rows" --card
done
