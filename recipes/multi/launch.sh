#!/usr/bin/env bash
# Run all stages on one GPU within TOTAL seconds. Every stage writes its weights and a log to RUN, so
# partial results survive an interruption.
#   launch.sh PARTS RUN
set -u
PARTS=$1 RUN=$2
: "${TOTAL:=1200}" "${DEVICE:=cuda}" "${EXTRA:=}" "${MOST:=1500}" "${PYTHON:=python3}"
: "${STAGE1:=$((TOTAL * 12 / 100))}" "${STAGE2:=$((TOTAL * 26 / 100))}" "${TAGS:=$((TOTAL * 6 / 100))}"
: "${SHIPPED:=}"  # weights.safetensors of `train start`: an additional teacher, and the start of the student
: "${ROWS:=252000}" "${PROCESSES:=8}"  # FLORES outputs for distillation; processes that damage texts
export OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=true PYTHONUNBUFFERED=1
mkdir -p "$RUN"
BEGIN=$(date +%s)
say() { echo "$(date +%T) $*" | tee -a "$RUN/launch.log"; }
train() { $PYTHON -m recipes.multi.train "$@" --parts "$PARTS" --run "$RUN" --device "$DEVICE" --rows "$ROWS" $EXTRA; }
store() { $PYTHON -m recipes.multi.store "$PARTS/$1" --encoder "$PARTS/encoder"; }

run_stages() {
say "prepare"
for part in rankings held-out judgements outputs; do store $part >> "$RUN/prepare.out" 2>&1 & done
$PYTHON -m recipes.multi.tables --parts "$PARTS" --processes "$PROCESSES" > "$RUN/tables.out" 2>&1 &
say "seeds"
pids=
for seed in 1 2; do
    train seed --seed $seed --seconds "$STAGE1" "$STAGE2" > "$RUN/seed$seed.out" 2>&1 &
    pids="$pids $!"
done
(
    if [ -n "$SHIPPED" ]; then
        $PYTHON -m recipes.multi.teachers --parts "$PARTS" --run "$RUN" --rows "$ROWS" > "$RUN/letters.out" 2>&1
        train teach "$SHIPPED" > "$RUN/teach-shipped.out" 2>&1
    fi
    $PYTHON -m recipes.multi.english --parts "$PARTS" --run "$RUN" --rows "$ROWS" --device "$DEVICE"
) > "$RUN/english.out" 2>&1 &
wait $pids
say "teach"
for seed in 1 2; do train teach "$RUN/seed$seed.safetensors" > "$RUN/teach$seed.out" 2>&1 & done
wait
best=$($PYTHON - "$RUN" <<'P'
import glob, json, sys
means = {p[:-5]: json.load(open(p))["mean"] for p in glob.glob(sys.argv[1] + "/seed[12].json")}
print(max(means, key=means.get))
P
)
best=${SHIPPED:-$best.safetensors}
seconds=$((BEGIN + TOTAL * 9 / 10 - $(date +%s)))
say "student from $best for $seconds s"
train student "$best" --seconds $seconds --rates 1.2e-4 > "$RUN/student.out" 2>&1
say "tags and report"
train tags "$RUN/student1.safetensors" --seconds "$TAGS" --rates 5e-4 > "$RUN/tags.out" 2>&1 &
train report "$RUN/student1.safetensors" --test --most "$MOST" > "$RUN/report.out" 2>&1 &
wait
say "done"
touch "$RUN/DONE"
}

run_stages  # a function, so that the script can be edited while it runs
