#!/usr/bin/env bash
# All stages on one GPU under a clock. Runs on while its caller sends further parts; every stage
# leaves its weights and a log in $RUN, so that whatever happens something can be taken home.
#   launch.sh PARTS RUN
set -u
PARTS=$1 RUN=$2
: "${BAKE:=70}" "${STAGE1:=120}" "${STAGE2:=280}" "${STAGE3:=50}" "${STUDENT:=320}" "${SEEDS:=1 2 3}"
: "${VARIANTS:=0 4 8}" "${DEVICE:=cuda}" "${EXTRA:=}" "${TEACHERS:=9}" "${TEACHER_ROWS:=260000}"
: "${PYTHON:=python3}" "${ENGLISH_ROWS:=130000 90000}" "${MOST:=2500}"
export OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=true PYTHONUNBUFFERED=1
mkdir -p "$RUN"
say() { echo "$(date +%T) $*" | tee -a "$RUN/launch.log"; }
train() { $PYTHON -m recipes.multi.train "$@" --parts "$PARTS" --device "$DEVICE" $EXTRA; }

run_stages() {
say "prepare"
$PYTHON -m recipes.multi.store "$PARTS/rankings" --encoder "$PARTS/encoder" > "$RUN/prepare.out" 2>&1
(   # what is sent later is prepared as soon as it is whole, then the English teacher reads it
    for part in held-out judgements outputs; do
        while [ ! -e "$PARTS/$part/SENT" ]; do sleep 1; done
        RAYON_NUM_THREADS=8 $PYTHON -m recipes.multi.store "$PARTS/$part" \
          --encoder "$PARTS/encoder" >> "$RUN/prepare.out" 2>&1
    done
    while [ ! -e "$PARTS/english/SENT" ]; do sleep 1; done
    PYTHONPATH="src:." nice $PYTHON -m recipes.multi.english --parts "$PARTS" \
      --run "$RUN" --processes "$TEACHERS" --rows $ENGLISH_ROWS > "$RUN/english.out" 2>&1
) &

say "variants: $VARIANTS"
pids=
for apart in $VARIANTS; do
    train seed --run "$RUN/variant$apart" --apart "$apart" --seconds "$BAKE" 0 0 \
      > "$RUN/variant$apart.out" 2>&1 &
    pids="$pids $!"
done
wait $pids
number=0
APART=$($PYTHON - "$RUN" <<'P'
import glob, json, sys
found = [json.load(open(p)) for p in glob.glob(sys.argv[1] + "/variant*/seed*.json")]
# comparisons into English alone were seen: the old sets choose
views = ("source", "reference", "both")
best = max(found, key=lambda f: sum(f[f"wmt15 {v}"] for v in views), default={"apart": 0})
print(best["apart"])
P
)
say "chosen: the lower $APART layers read apart"
echo "$APART" > "$RUN/apart"

say "seeds: $SEEDS"
pids=
for seed in $SEEDS; do
    train seed --run "$RUN" --apart "$APART" --seed "$seed" \
      --seconds "$STAGE1" "$STAGE2" "$STAGE3" > "$RUN/seed$seed.out" 2>&1 &
    pids="$pids $!"
done
wait $pids
weights=$(ls "$RUN"/seed?-3.safetensors)
say "soup of $weights"
train soup $weights --run "$RUN" --apart "$APART" > "$RUN/soup.out" 2>&1
say "teach"
pids=
for teacher in $weights; do
    number=$((number + 1))
    train teach "$teacher" --run "$RUN" --apart "$APART" --rows "$TEACHER_ROWS" \
      --seed "$number" > "$RUN/teach$number.out" 2>&1 &
    pids="$pids $!"
done
wait $pids
say "student"
train student "$RUN/soup.safetensors" --run "$RUN" --apart "$APART" --seconds "$STUDENT" \
  --rates 1e-4 > "$RUN/student.out" 2>&1
$PYTHON - "$RUN" <<'P'
import sys
from pathlib import Path
from recipes.multi.fit import average
run = Path(sys.argv[1])
average([run / "soup.safetensors", run / "student1.safetensors"], run / "blend.safetensors")
P
say "report"
pids=
for name in student1 blend soup; do
    train report "$RUN/$name.safetensors" --run "$RUN" --apart "$APART" --test --most "$MOST" \
      > "$RUN/report-$name.out" 2>&1 &
    pids="$pids $!"
done
wait $pids
say "done"
touch "$RUN/DONE"
}

run_stages  # a function: the shell reads it whole before it starts
