#!/bin/bash
# What the program does with a genuine failure on a GPU, from the crash to the proven launch.
#
# An 8B-shaped model with random weights is started with more memory given to the KV pool than
# graph capture can spare. Its log is analyzed, the failure reproduced and fixed, the highest
# fraction searched, and capture probed without a server. The figures that are expected are those
# of an NVIDIA H200 (139.8 GiB) with SGLang 0.5.16; other cards need another FRACTION.
#
# usage: h200_reproduce.sh DIR STAGE...  stages: model crash analyze reproduce search probe scale
#   DIR gets logs, plans and verdicts; stages build on the ones before.
# PYTHON (python3) has SGLang and what forensics needs; MODELS (/models) gets the model's shape.
set -u
here=$(cd "$(dirname "$0")/.." && pwd)
out=$(mkdir -p "$1" && cd "$1" && pwd) || exit 2
shift
python=${PYTHON:-python3} models=${MODELS:-/models} fraction=${FRACTION:-0.9775}
model=$models/llama-8b log=$out/crash.log
export HF_HUB_OFFLINE=1 PYTHONUNBUFFERED=1
export PYTHONPATH=${PYTHONPATH:+$PYTHONPATH:}$here
cd "$out" || exit 2

forensics() { "$python" -m forensics "$@"; }
said() { printf '== %s: exit %s after %s s\n' "$1" "$2" "$((SECONDS - began))"; }

make_model() {   # a configuration and a tokenizer; the weights are --load-format dummy
    mkdir -p "$model"
    "$python" - "$model" <<'PY'
import json, sys
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
folder = sys.argv[1]
config = dict(architectures=["LlamaForCausalLM"], model_type="llama", hidden_size=4096,
    intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=8,
    head_dim=128, vocab_size=128256, max_position_embeddings=131072, rms_norm_eps=1e-5,
    rope_theta=500000.0, hidden_act="silu", tie_word_embeddings=False, bos_token_id=0,
    eos_token_id=1, torch_dtype="bfloat16", initializer_range=0.02, attention_bias=False,
    mlp_bias=False)
json.dump(config, open(f"{folder}/config.json", "w"), indent=1)
tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
tokenizer.train_from_iterator(["the server is ready"], trainers.BpeTrainer(vocab_size=400,
    special_tokens=["<s>", "</s>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
tokenizer.save(f"{folder}/tokenizer.json")
kind = dict(tokenizer_class="PreTrainedTokenizerFast", bos_token="<s>", eos_token="</s>",
    model_max_length=131072)
json.dump(kind, open(f"{folder}/tokenizer_config.json", "w"))
PY
}

crash() {   # as somebody would who writes `set -x` into the script that starts a server
    cat > "$out/start.sh" <<SH
set -x
exec $python -m sglang.launch_server --model-path $model --load-format dummy \\
    --host 127.0.0.1 --port 30000 --attention-backend triton --sampling-backend pytorch \\
    --grammar-backend none --mem-fraction-static $fraction --cuda-graph-max-bs-decode 512
SH
    bash "$out/start.sh" > "$log" 2>&1
}

figures() {   # predicted and measured free memory at the first capture begin, trial by trial
    "$python" - "$@" <<'PY'
import json, sys
worst = 0.0
for path in sys.argv[1:]:
    found = json.load(open(path))
    print(f"{path}: {found['verdict']}; best {found['best'].get('value')}")
    for trial in found["trials"]:
        foretold, free = (trial[k]["free_gib_at_capture"] for k in ("predicted", "measured"))
        off = None if foretold is None or free is None else round(free - foretold, 2)
        worst = max(worst, abs(off or 0.0))
        print(f"  {trial['name']:16}{trial['outcome']:10}{foretold!s:>8}{free!s:>8}{off!s:>7}")
print(f"predicted within {worst:.2f} GiB")
PY
}

for stage in "$@"; do
    began=$SECONDS
    case $stage in
        model) make_model ;;
        crash) crash ;;
        analyze)
            forensics analyze "$log" --color never > "$out/analyze.txt"
            ;;
        reproduce)
            forensics reproduce "$log" --yes --goal ready --timeout 240 --folder "$out/reproduce" \
                --color never > "$out/reproduce.txt"
            ;;
        search)
            forensics reproduce "$log" --yes --search mem_fraction_static --timeout 240 \
                --folder "$out/search" --color never > "$out/search.txt"
            ;;
        probe)
            for at in $fraction 0.975 0.96; do
                forensics probe "$log" --mem-fraction-static "$at" --format json \
                    > "$out/probe-$at.json"
                said "probe at $at" $?
            done
            ;;
        scale)   # as on a card of 79 GiB: the rest is held meanwhile
            "$python" "$here/forensics/reproduce/ballast.py" 79.1 sleep 1000 &
            held=$!
            sleep 5
            forensics reproduce "$log" --scale --yes --goal capture --timeout 240 \
                --folder "$out/scale" --color never > "$out/scale.txt"
            set -- $?
            kill "$held"
            said "scaled down" "$1"
            ;;
        *) echo "unknown stage $stage" >&2; exit 2 ;;
    esac
    said "$stage" $?
done
found=("$out"/*/reproduction.json)
if [ -e "${found[0]}" ]; then figures "${found[@]}"; fi
