# What tables.sh and reproduce.sh share. They set two folders first: cells has files of cells, made gets
# tables/ and figures/.
left_out= # the steps that failed
trap 'exit 130' INT # else the next step would begin
trap 'exit 143' TERM

missed() { # STEP: what fails is told and passed over
    echo "== not whole: $1" >&2
    left_out="$left_out
  $1"
}

table() { # NAME KIND CELLS [flags]; - in the place of CELLS: this table is made of other things
    name=$1 kind=$2 file=$3
    shift 3
    [ "$file" = - ] || set -- "$cells/$file.jsonl" "$@"
    to=$made/tables/$name
    python -m selftrain table "$kind" "$@" -o "$to.md" -o "$to.csv" -o "$to.tex" || missed "table $name"
}

figure() { # NAME KIND SOURCES AND FLAGS
    name=$1 kind=$2
    shift 2
    to=$made/figures/$name
    python -m selftrain figure "$kind" "$@" -o "$to.png" -o "$to.svg" --csv "$to.csv" || missed "figure $name"
}
