#!/usr/bin/env bash
# The whole paper, as the paper has it: RoBERTa-large, seven tasks, five seeds; its tables and figures are in OUT.
#     benchmarks/paper/reproduce.sh DATA OUT [--preset paper] [--backbone roberta-large] [--dry-run]
#         [--grids FOLDER] [--search FLAGS] [flags of selftrain bench, such as --seeds 12 or --device cuda]
# DATA may be the word hub. The cost comes first; --dry-run stops there. Killed, it goes on with the same command.
# What fails is told, passed over and named at the end; then the exit code is 1.
#     --grids FOLDER   other grids of the same names, in the place of whole/
#     --search FLAGS   other flags of `selftrain sweep` for Table 8, in one word; none: no search
set -eu
if [ $# -lt 2 ]; then
    sed -n '2,8s/^# *//p' "$0" >&2
    exit 2
fi
here=$(dirname "$0")
data=$1 out=$2 cells=$2/cells made=$2
shift 2
. "$here/steps.sh"

names="table1 table2 table5 table4 table3 full_data"
grids=$here/whole preset=paper backbone=roberta-large stop=
search="--method upet-prompt-ptuning --tasks sst2,agnews --trials 20"
flags=() both=() # those of bench; those that a search has too
while [ $# -gt 0 ]; do
    case $1 in
        --*=*) set -- "${1%%=*}" "${1#*=}" "${@:2}" ;;
    esac
    case $1 in
        --dry-run) stop=yes && shift && continue ;;
        --as-published) preset=published && shift && continue ;;
        --*) [ $# -gt 1 ] || { echo "error: $1 has no value" >&2 && exit 2; } ;;
        *) echo "error: $1 is no flag" >&2 && exit 2 ;;
    esac
    case $1 in
        --grids) grids=$2 ;;
        --preset) preset=$2 ;;
        --backbone) backbone=$2 ;;
        --search) search=$2 ;;
        --seeds | --rounds | --storage | --device | --threads | --cache | --cache-mb) both+=("$1" "$2") ;;
        *) flags+=("$1" "$2") ;;
    esac
    shift 2
done
of=(--backbone "$backbone" --preset "$preset")

bench() { # [more flags]
    python -m selftrain bench "$data" -o "$cells" "${of[@]}" ${both[@]+"${both[@]}"} ${flags[@]+"${flags[@]}"} "$@"
}

look_up() { # [more flags]: the search of Table 8; its flags are several words
    # shellcheck disable=SC2086
    python -m selftrain sweep "$data" -o "$out/search" "${of[@]}" ${both[@]+"${both[@]}"} $search "$@"
}

has_all() { # COSTS GRID: whether no cell of a grid is to do
    grep -q "^$2: 0 of " <<<"$1"
}

every_grid=()
for name in $names; do
    every_grid+=(--grid "$grids/$name.toml")
done

mkdir -p "$out" # a storage may lie in it
echo "== what it costs" >&2
costs=$(bench "${every_grid[@]}" --dry-run 2>&1) || { echo "$costs" >&2 && exit 1; }
echo "$costs" >&2
[ "$data" != hub ] || data=$cells/data # fetched by now
if [ "$search" != none ] && ! look_up --dry-run; then
    missed "the search of Table 8"
    search=none
fi
if [ -n "$stop" ]; then
    [ -z "$left_out" ] # the exit code
    exit
fi

mkdir -p "$made/tables" "$made/figures"
for name in $names; do
    has_all "$costs" "$name" && continue
    echo "== $(date '+%F %H:%M') $name" >&2
    bench --grid "$grids/$name.toml" || missed "some cells of $name"
done
if [ "$search" != none ]; then
    echo "== $(date '+%F %H:%M') the search of Table 8" >&2
    look_up >&2 || missed "the search of Table 8"
fi

echo "== $(date '+%F %H:%M') tables and figures" >&2
table table1 main cells "${of[@]}" --paper
table table2 pel cells "${of[@]}" --paper
table table3 shots cells "${of[@]}" --paper
table table4 alpha cells "${of[@]}" --paper
table table5 ablation cells "${of[@]}" --paper
table table6 nonbert cells "${of[@]}"
table table7 data - --data "$data"
if [ -f "$out/search/sweep.json" ]; then
    table table8 grid - --sweep "$out/search/sweep.json"
else
    table table8 grid -
fi
table speed speed cells "${of[@]}"
figure figure3 rounds "$cells/cells.jsonl" "${of[@]}" --task mnli --task rte
pair="upet-prompt-ptuning upet-prompt-ptuning-wo-contrast"
# shellcheck disable=SC2086
if found=$(python "$here/../runs.py" "$cells/cells.jsonl" $pair --task agnews "${of[@]}"); then
    mapfile -t runs <<<"$found"
    tests=("$data"/agnews/test.*)
    figure figure4 tsne "${runs[@]}" --test "${tests[0]}" --backbone "$backbone"
else
    missed "figure figure4"
fi
audits=$(mktemp "$out/audits.XXXXXX") # a copy: another worker may write it too
[ ! -f "$out/audits.jsonl" ] || cp "$out/audits.jsonl" "$audits"
if printed=$(python "$here/../audits.py" "$data" "$cells" --out "$audits"); then
    grep '^|' <<<"$printed" >"$made/tables/audits.md" || missed "table audits"
    mv "$audits" "$out/audits.jsonl"
else
    missed "table audits"
    rm -f "$audits"
fi

echo "== $(date '+%F %H:%M') is it whole?" >&2
left=$(bench "${every_grid[@]}" --dry-run 2>&1) || missed "the count of the cells: $left"
for name in $names; do
    has_all "$left" "$name" || missed "$(grep "^$name: " <<<"$left" || echo "$name")"
done
if [ -n "$left_out" ]; then
    echo "== not whole; the same command goes on:$left_out" >&2
    exit 1
fi
echo "== whole: $made/tables, $made/figures" >&2
