#!/bin/sh
# The tables and figures of this folder, from the cells in it; what has no cells yet is told and passed over.
#     benchmarks/paper/tables.sh DATA OUT
# OUT holds the run folders, as run.sh left them: Figure 4 is drawn from two of them.
set -eu
data=$1 out=$2
here=$(dirname "$0")
cells=$here made=$here
. "$here/steps.sh"
mkdir -p "$made/tables" "$made/figures"

table main-one-round main one_round --backbone minilm-mlm --paper
table main-one-round-minilm main one_round --backbone minilm
table main main three_rounds --backbone minilm-mlm --paper
table main-minilm main three_rounds --backbone minilm
table first main cells --backbone minilm-mlm --seeds 12,21,42 --paper
table ablation ablation one_round --backbone minilm-mlm --paper
table alpha alpha one_round --backbone minilm-mlm --paper
table pel pel one_round --backbone minilm-mlm --paper
table shots shots one_round --backbone minilm-mlm --seeds 12 --paper # computed for no other seed, and 64 not yet
table pairs main pairs --backbone minilm-mlm --paper
table speed speed one_round --backbone minilm-mlm
figure rounds rounds "$here/cells.jsonl" --backbone minilm-mlm
figure rounds-minilm rounds "$here/cells.jsonl" --backbone minilm
figure calibration calibration "$here/one_round.jsonl" --backbone minilm-mlm --task agnews
runs=$out/one_round/runs/agnews/minilm-mlm/16-shot/seed-12
figure tsne tsne "$runs"/upet-head-adapter-???????????? "$runs"/upet-head-adapter-wo-contrast-* \
    --test "$data/agnews/test.jsonl" --rows 1000
