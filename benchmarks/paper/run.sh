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
# One round of everything first: the rounds after it can be added to the same runs.
for seed in 12 21 42; do
    for task in sst2 agnews; do
        step main one_round one_round --rounds 1 --task "$task" --seeds "$seed" "$@"
    done
done
for grid in head_minilm ablation alpha; do
    for seed in 12 21 42; do
        step "$grid" one_round one_round --rounds 1 --seeds "$seed" "$@"
    done
done
for grid in pel shots; do
    step "$grid" one_round one_round --rounds 1 "$@"
done
step pairs pairs pairs --rounds 1 "$@"
step steps steps steps --on design "$@"
for grid in prefix_rate ptuning_length; do
    step "$grid" modules modules --on design "$@"
done
for grid in trunk states; do
    step "$grid" trunk trunk --on design "$@"
done
# As links: these runs go on from their first round. Some cp fail where a file is there already.
# A folder of its own: the cells of `first` are of older code than those they would stand beside. The first rounds that
# are linked here may be older too: a cell names the commit that closed it.
mkdir -p "$out/three_rounds"
cp -aln "$out/one_round/runs" "$out/three_rounds/" || echo "== not all linked, or nothing new" >&2
for grid in main head_minilm; do
    for seed in 12 21 42; do
        step "$grid" three_rounds three_rounds --seeds "$seed" "$@"
    done
done
