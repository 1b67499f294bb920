#!/usr/bin/env bash
# A second round on one GPU, from the model that ships: three mixtures, their scores as teachers,
# three students, their mean. Parts may still arrive while it runs; whatever happens, every stage
# leaves its weights and a log in $RUN.
#   again.sh PARTS RUN
set -u
PARTS=$1 RUN=$2
: "${FURTHER:=400}" "${STUDENT:=640}" "${SEEDS:=1 2 3}" "${DEVICE:=cuda}" "${EXTRA:=}" "${APART:=4}"
: "${TEACHER_ROWS:=300000}" "${PYTHON:=python3}" "${MOST:=2500}" "${RATES:=8e-5}"
MIXTURES=(none balanced broad old)
export OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=true PYTHONUNBUFFERED=1 PYTHONPATH="src:."
mkdir -p "$RUN"
say() { echo "$(date +%T) $*" | tee -a "$RUN/launch.log"; }
train() {
    $PYTHON -m recipes.multi.train "$@" --parts "$PARTS" --run "$RUN" --apart "$APART" \
      --device "$DEVICE" $EXTRA
}

run_stages() {
say "prepare"
(   # what is sent later is prepared as soon as it is whole
    for part in rankings held-out judgements outputs; do
        while [ ! -e "$PARTS/$part/SENT" ]; do sleep 1; done
        RAYON_NUM_THREADS=14 $PYTHON -m recipes.multi.store "$PARTS/$part" \
          --encoder "$PARTS/encoder" >> "$RUN/prepare.out" 2>&1
    done
    while [ ! -e "$PARTS/english-2/SENT" ]; do sleep 1; done
    $PYTHON -m recipes.multi.english score --parts "$PARTS" --run "$RUN" --device "$DEVICE" \
      > "$RUN/english.out" 2>&1
) &
while [ ! -e "$PARTS/start/SENT" ]; do sleep 1; done
while [ ! -e "$PARTS/outputs/READY" ]; do sleep 1; done
say "further: $SEEDS"
pids=
for seed in $SEEDS; do
    train further "$PARTS/start/weights.safetensors" --seed "$seed" --seconds "$FURTHER" \
      --rates "$RATES" --mixture "${MIXTURES[$seed]}" > "$RUN/further$seed.out" 2>&1 &
    pids="$pids $!"
done
wait $pids
weights=$(ls "$RUN"/further?.safetensors)
say "soup of $weights"
train soup $weights > "$RUN/soup.out" 2>&1 &
soup=$!
number=0
say "teach"
pids=
for teacher in $weights; do
    number=$((number + 1))
    train teach "$teacher" --rows "$TEACHER_ROWS" --seed "$number" > "$RUN/teach$number.out" 2>&1 &
    pids="$pids $!"
done
wait $pids $soup
best=$($PYTHON - "$RUN" <<'P'
import glob, json, sys
found = {p: json.load(open(p))["mean"] for p in glob.glob(sys.argv[1] + "/[fs]*[0-9p].json")}
print(max(found, key=found.__getitem__).replace(".json", ".safetensors"))
P
)
say "students from $best"
pids=
for seed in $SEEDS; do
    train student "$best" --seed "$seed" --seconds "$STUDENT" --rates "$RATES" --english 0.6 \
      --mixture balanced > "$RUN/student$seed.out" 2>&1 &
    pids="$pids $!"
done
wait $pids
say "mean"
train soup "$RUN"/student?.safetensors --name mean > "$RUN/mean.out" 2>&1
say "report"
pids=
for name in mean student1 student2 student3; do
    train report "$RUN/$name.safetensors" --test --most "$MOST" > "$RUN/report-$name.out" 2>&1 &
    pids="$pids $!"
done
wait $pids
say "done"
touch "$RUN/DONE"
}

run_stages  # a function: the shell reads it whole before it starts
