#!/bin/sh
# The paper's tables as one machine can make them: the grids of this folder, in the order of what they are worth.
#     benchmarks/paper/small/run.sh DATA OUT [flags of selftrain bench, such as --threads 1]
# OUT holds the run folders, which are large. Killed, it goes on. Two workers share the work with the same command and
# --storage journal://OUT/cells.journal. The cells are copied here after each step, and from here into a new OUT: a cell
# that is here is not computed again.
set -eu
data=$1 out=$2
shift 2
here=$(dirname "$0")

step() { # GRID FOLDER [flags]: what fails is told and passed over, and tried again next time
    grid=$1 folder=$2
    shift 2
    echo "== $(date +%H:%M) $grid" >&2
    if [ -f "$here/$folder.jsonl" ] && [ ! -f "$out/$folder/cells.jsonl" ]; then
        mkdir -p "$out/$folder"
        cp "$here/$folder.jsonl" "$out/$folder/cells.jsonl"
    fi
    python -m selftrain bench "$data" -o "$out/$folder" --shared "$out/one_round/shared" \
        --grid "$here/$grid.toml" "$@" || echo "== not whole: $grid" >&2
    if [ -f "$out/$folder/cells.jsonl" ]; then
        cp "$out/$folder/cells.jsonl" "$here/$folder.jsonl"
    fi
}

# A run of one round and of five is the same run, which goes on.
mkdir -p "$out/one_round/runs" "$out/five_rounds"
[ -e "$out/five_rounds/runs" ] || ln -s ../one_round/runs "$out/five_rounds/runs"

step table1 one_round "$@"
step figure3 five_rounds "$@"
step pairs pairs "$@"
for grid in table5 table4 table3 table2 full_data; do
    step "$grid" one_round "$@"
done
