#!/bin/sh
# The cells of this folder, in the order that gives whole tables first; killed, it goes on.
#     benchmarks/paper/run.sh DATA OUT [flags of selftrain bench, such as --threads 2]
# OUT holds the run folders, which are large; the cells are copied here after each step.
set -eu
data=$1 out=$2
shift 2
here=$(dirname "$0")

step() { # GRID FOLDER CELLS [flags]: what fails is told and passed over, and tried again next time
    grid=$1 folder=$2 cells=$3
    shift 3
    echo "== $(date +%H:%M) $grid $*" >&2
    python -m selftrain bench "$data" -o "$out/$folder" --shared "$out/paper/shared" \
        --grid "$here/$grid.toml" "$@" || echo "== not whole: $grid $*" >&2
    if [ -f "$out/$folder/cells.jsonl" ]; then
        cp "$out/$folder/cells.jsonl" "$here/$cells.jsonl"
    fi
}

step first paper cells "$@"
for seed in 12 21 42; do
    for task in sst2 agnews; do
        step main paper cells --task "$task" --seeds "$seed" "$@"
    done
done
for task in sst2 agnews; do
    step one_round one_round one_round --task "$task" "$@"
done
step contrast paper cells "$@"
for seed in 12 21 42; do
    step head_minilm paper cells --seeds "$seed" "$@"
done
step pel paper cells "$@"
step shots paper cells "$@"
step pairs pairs pairs "$@"
step trunk trunk trunk --on design "$@"
