# Completes the commands, options and values of tertium in bash and zsh.

_tertium_words() {
  case "$1" in
    "") echo "score compare rank check explain report corpus gate worst route list train meta plan annotate agree setup" ;;
    " score") echo "-h --help --source-language --target-language -t --translations -i --input -s --sources --names --fields -r --references --documents -m --metrics --model --precision --by --paired-bs --paired-ar --resamples --confidence-n --paired-bs-n --paired-ar-n --seed --alpha -b --score-only -sl --sentence-level -dl --document-level --only-system --with-texts -o --output --write-back --device --gpus --threads --batch-size --no-cache --judge-url --concurrency --request-timeout --price --budget --allow-http --use-proxy --dry-run -f --format -w --width -q --quiet --confidence" ;;
    " score --precision") echo "auto fp32 bf16 fp16 int8" ;;
    " score -f") echo "text json tsv csv md latex" ;;
    " score --format") echo "text json tsv csv md latex" ;;
    " compare") echo "-h --help --source-language --target-language -t --translations -i --input -s --sources --names --fields -r --references --documents -m --metrics --model --precision --by --paired-bs --paired-ar --resamples --confidence-n --paired-bs-n --paired-ar-n --seed --alpha -o --output --device --gpus --threads --batch-size --no-cache --judge-url --concurrency --request-timeout --price --budget --allow-http --use-proxy --dry-run -f --format -w --width -q --quiet --pairs" ;;
    " compare --precision") echo "auto fp32 bf16 fp16 int8" ;;
    " compare -f") echo "text json tsv csv md latex" ;;
    " compare --format") echo "text json tsv csv md latex" ;;
    " rank") echo "-h --help --source-language --target-language -t --translations -i --input -s --sources --names --fields -r --references --documents --device --gpus --threads --batch-size --no-cache --judge-url --concurrency --request-timeout --price --budget --allow-http --use-proxy -m --metrics --model -sl --sentence-level -o --output -f --format -w --width -q --quiet candidates" ;;
    " rank -f") echo "text json tsv csv md latex" ;;
    " rank --format") echo "text json tsv csv md latex" ;;
    " rank candidates") echo "-h --help --device --gpus --threads --batch-size --no-cache --judge-url --concurrency --request-timeout --price --budget --allow-http --use-proxy -f --format -w --width -q --quiet -m --metrics --model -o --output" ;;
    " rank candidates -f") echo "text json tsv csv md latex" ;;
    " rank candidates --format") echo "text json tsv csv md latex" ;;
    " check") echo "-h --help --source-language --target-language -t --translations -i --input -s --sources --names --fields --select --ignore --config --terms --do-not-translate --max-length -o --output --write-back -f --format -w --width -q --quiet --summary --fail-on" ;;
    " check -f") echo "text json tsv csv md latex" ;;
    " check --format") echo "text json tsv csv md latex" ;;
    " check --fail-on") echo "minor major critical" ;;
    " explain") echo "-h --help --source-language --target-language -t --translations -i --input -s --sources --names --fields -r --references --documents --judge-url --concurrency --request-timeout --price --budget --allow-http --use-proxy --text --segment -m --metrics --model -n --count -o --output -f --format -w --width -q --quiet" ;;
    " explain -f") echo "text json tsv csv md latex" ;;
    " explain --format") echo "text json tsv csv md latex" ;;
    " report") echo "-h --help --source-language --target-language -t --translations -i --input -s --sources --names --fields -r --references --documents -m --metrics --model --precision --by --paired-bs --paired-ar --resamples --confidence-n --paired-bs-n --paired-ar-n --seed --alpha -o --output --device --gpus --threads --batch-size --no-cache --judge-url --concurrency --request-timeout --price --budget --allow-http --use-proxy --dry-run --human --checks -n --count --explain-with -f --format -w --width -q --quiet" ;;
    " report --precision") echo "auto fp32 bf16 fp16 int8" ;;
    " report -f") echo "text json tsv csv md latex" ;;
    " report --format") echo "text json tsv csv md latex" ;;
    " corpus") echo "-h --help --fields --strict --max-length -m --metrics --model --precision --source-language --target-language -o --output --keep --resume --spans --part-rows --ray --workers --worker-gpus --device --gpus --threads --batch-size --no-cache --judge-url --concurrency --request-timeout --price --budget --allow-http --use-proxy -f --format -w --width -q --quiet" ;;
    " corpus --precision") echo "auto fp32 bf16 fp16 int8" ;;
    " corpus -f") echo "text json tsv csv md latex" ;;
    " corpus --format") echo "text json tsv csv md latex" ;;
    " gate") echo "-h --help --source-language --target-language -t --translations -i --input -s --sources --names --fields -r --references --documents --baseline --candidate --config --alpha -m --metrics --model --precision --margin --max --min --by --undecided --device --gpus --threads --batch-size --no-cache --judge-url --concurrency --request-timeout --price --budget --allow-http --use-proxy --dry-run -o --output -f --format -w --width -q --quiet calibrate" ;;
    " gate --precision") echo "auto fp32 bf16 fp16 int8" ;;
    " gate --undecided") echo "pass fail" ;;
    " gate -f") echo "text json tsv csv md latex" ;;
    " gate --format") echo "text json tsv csv md latex" ;;
    " gate calibrate") echo "-h --help --source-language --target-language -t --translations -i --input -s --sources --names --fields -r --references --documents --baseline --candidate --config --alpha -m --metrics --model --precision --device --gpus --threads --batch-size --no-cache --judge-url --concurrency --request-timeout --price --budget --allow-http --use-proxy --dry-run -o --output -f --format -w --width -q --quiet" ;;
    " gate calibrate --precision") echo "auto fp32 bf16 fp16 int8" ;;
    " gate calibrate -f") echo "text json tsv csv md latex" ;;
    " gate calibrate --format") echo "text json tsv csv md latex" ;;
    " worst") echo "-h --help --source-language --target-language -t --translations -i --input -s --sources --names --fields -r --references --documents -m --metrics --model --precision --device --gpus --threads --batch-size --no-cache --judge-url --concurrency --request-timeout --price --budget --allow-http --use-proxy --dry-run -n --count --per -o --output -f --format -w --width -q --quiet" ;;
    " worst --precision") echo "auto fp32 bf16 fp16 int8" ;;
    " worst -f") echo "text json tsv csv md latex" ;;
    " worst --format") echo "text json tsv csv md latex" ;;
    " route") echo "fit apply" ;;
    " route fit") echo "-h --help --human --data --lps --exclude --gold -m --metrics --model --precision --target-precision --alpha --good-score --bad-score --device --gpus --threads --batch-size --no-cache --judge-url --concurrency --request-timeout --price --budget --allow-http --use-proxy --escalate --ignore -o --output -f --format -w --width -q --quiet" ;;
    " route fit --precision") echo "auto fp32 bf16 fp16 int8" ;;
    " route fit -f") echo "text json tsv csv md latex" ;;
    " route fit --format") echo "text json tsv csv md latex" ;;
    " route apply") echo "-h --help --source-language --target-language -t --translations -i --input -s --sources --names --fields -r --references --documents --device --gpus --threads --batch-size --no-cache --judge-url --concurrency --request-timeout --price --budget --allow-http --use-proxy -o --output -f --format -w --width -q --quiet" ;;
    " route apply -f") echo "text json tsv csv md latex" ;;
    " route apply --format") echo "text json tsv csv md latex" ;;
    " list") echo "-h --help -o --output -f --format -w --width -q --quiet models data checks citations" ;;
    " list -f") echo "text json tsv csv md latex" ;;
    " list --format") echo "text json tsv csv md latex" ;;
    " list models") echo "-h --help -o --output -f --format -w --width -q --quiet" ;;
    " list models -f") echo "text json tsv csv md latex" ;;
    " list models --format") echo "text json tsv csv md latex" ;;
    " list data") echo "-h --help --data -o --output -f --format -w --width -q --quiet" ;;
    " list data -f") echo "text json tsv csv md latex" ;;
    " list data --format") echo "text json tsv csv md latex" ;;
    " list checks") echo "-h --help -o --output -f --format -w --width -q --quiet" ;;
    " list checks -f") echo "text json tsv csv md latex" ;;
    " list checks --format") echo "text json tsv csv md latex" ;;
    " list citations") echo "-h --help -f --format -w --width -q --quiet -o --output" ;;
    " list citations -f") echo "text json tsv csv md latex" ;;
    " list citations --format") echo "text json tsv csv md latex" ;;
    " train") echo "-h --help --train --human --dev --held-out --gold --recipe --device --gpus --threads --judge-url --concurrency --request-timeout --price --budget --allow-http --use-proxy -m --metrics -o --output --overwrite -f --format -w --width -q --quiet bilstm bilstm-attention blend bleu-r esim meteor-r mt-r mt-rte-r nist-r pairwise rte-r svr ter-r tertium-multi-adapted" ;;
    " train -f") echo "text json tsv csv md latex" ;;
    " train --format") echo "text json tsv csv md latex" ;;
    " meta") echo "-h --help --human --data --lps --exclude --gold --scores --scores-from-rows --standardize --human-baseline --lower-better --source-language --target-language -m --metrics --model --precision --resamples --seed --alpha --statistic --level --grouping --by --test --device --gpus --threads --batch-size --no-cache --judge-url --concurrency --request-timeout --price --budget --allow-http --use-proxy --confidence --pairs -o --output -f --format -w --width -q --quiet diagnostics protocol decisions thresholds spans disagreement challenge" ;;
    " meta --precision") echo "auto fp32 bf16 fp16 int8" ;;
    " meta --level") echo "segment system" ;;
    " meta --grouping") echo "none item system" ;;
    " meta --test") echo "auto bootstrap perm-both williams pairs none" ;;
    " meta -f") echo "text json tsv csv md latex" ;;
    " meta --format") echo "text json tsv csv md latex" ;;
    " meta diagnostics") echo "-h --help --human --data --lps --exclude --gold --scores --scores-from-rows --standardize --human-baseline --lower-better --source-language --target-language -m --metrics --model --precision --resamples --seed --alpha --device --gpus --threads --batch-size --no-cache --judge-url --concurrency --request-timeout --price --budget --allow-http --use-proxy -o --output -f --format -w --width -q --quiet" ;;
    " meta diagnostics --precision") echo "auto fp32 bf16 fp16 int8" ;;
    " meta diagnostics -f") echo "text json tsv csv md latex" ;;
    " meta diagnostics --format") echo "text json tsv csv md latex" ;;
    " meta protocol") echo "-h --help --human --data --lps --exclude --gold --scores --scores-from-rows --standardize --human-baseline --lower-better --source-language --target-language -m --metrics --model --precision --resamples --seed --alpha --device --gpus --threads --batch-size --no-cache --judge-url --concurrency --request-timeout --price --budget --allow-http --use-proxy wmt24 wmt25 -o --output -f --format -w --width -q --quiet" ;;
    " meta protocol --precision") echo "auto fp32 bf16 fp16 int8" ;;
    " meta protocol -f") echo "text json tsv csv md latex" ;;
    " meta protocol --format") echo "text json tsv csv md latex" ;;
    " meta decisions") echo "-h --help --human --data --lps --exclude --gold --scores --scores-from-rows --standardize --human-baseline --lower-better --source-language --target-language -m --metrics --model --precision --device --gpus --threads --batch-size --no-cache --judge-url --concurrency --request-timeout --price --budget --allow-http --use-proxy --good-score -o --output -f --format -w --width -q --quiet" ;;
    " meta decisions --precision") echo "auto fp32 bf16 fp16 int8" ;;
    " meta decisions -f") echo "text json tsv csv md latex" ;;
    " meta decisions --format") echo "text json tsv csv md latex" ;;
    " meta thresholds") echo "-h --help --human --data --lps --exclude --gold --scores --scores-from-rows --standardize --human-baseline --lower-better --source-language --target-language -m --metrics --model --precision --device --gpus --threads --batch-size --no-cache --judge-url --concurrency --request-timeout --price --budget --allow-http --use-proxy -o --output -f --format -w --width -q --quiet" ;;
    " meta thresholds --precision") echo "auto fp32 bf16 fp16 int8" ;;
    " meta thresholds -f") echo "text json tsv csv md latex" ;;
    " meta thresholds --format") echo "text json tsv csv md latex" ;;
    " meta spans") echo "-h --help --human --data --lps --exclude --gold --source-language --target-language -m --metrics --model --precision --resamples --seed --device --gpus --threads --batch-size --no-cache --judge-url --concurrency --request-timeout --price --budget --allow-http --use-proxy -o --output -f --format -w --width -q --quiet" ;;
    " meta spans --precision") echo "auto fp32 bf16 fp16 int8" ;;
    " meta spans -f") echo "text json tsv csv md latex" ;;
    " meta spans --format") echo "text json tsv csv md latex" ;;
    " meta disagreement") echo "-h --help --source-language --target-language -m --metrics --model --precision --device --gpus --threads --batch-size --no-cache --judge-url --concurrency --request-timeout --price --budget --allow-http --use-proxy --human --gold -n --count -o --output -f --format -w --width -q --quiet" ;;
    " meta disagreement --precision") echo "auto fp32 bf16 fp16 int8" ;;
    " meta disagreement -f") echo "text json tsv csv md latex" ;;
    " meta disagreement --format") echo "text json tsv csv md latex" ;;
    " meta challenge") echo "-h --help --source-language --target-language -m --metrics --model --precision --device --gpus --threads --batch-size --no-cache --judge-url --concurrency --request-timeout --price --budget --allow-http --use-proxy --select --lps --by -o --output -f --format -w --width -q --quiet" ;;
    " meta challenge --precision") echo "auto fp32 bf16 fp16 int8" ;;
    " meta challenge --by") echo "phenomenon language" ;;
    " meta challenge -f") echo "text json tsv csv md latex" ;;
    " meta challenge --format") echo "text json tsv csv md latex" ;;
    " plan") echo "-h --help --source-language --target-language -t --translations -i --input -s --sources --names --fields -r --references --documents --protocol --difference --time --power --alpha --raters-per-segment --systems --pilot --raters --segments --choose --by --common --attention-checks --show-reference --context --suspicions --instructions --terms --seed --as -o --output --device --gpus --threads --batch-size --no-cache -f --format -w --width -q --quiet convert" ;;
    " plan --protocol") echo "da esa mqm ranking contrastive-esa post-edit" ;;
    " plan --choose") echo "random stratified documents" ;;
    " plan --as") echo "tertium pearmut" ;;
    " plan -f") echo "text json tsv csv md latex" ;;
    " plan --format") echo "text json tsv csv md latex" ;;
    " plan convert") echo "-h --help -o --output --as --protocol -f --format -w --width -q --quiet" ;;
    " plan convert --as") echo "tertium pearmut" ;;
    " plan convert --protocol") echo "da esa mqm ranking contrastive-esa post-edit" ;;
    " plan convert -f") echo "text json tsv csv md latex" ;;
    " plan convert --format") echo "text json tsv csv md latex" ;;
    " annotate") echo "-h --help --answers --new-links --listen -o --output -f --format -w --width -q --quiet" ;;
    " annotate -f") echo "text json tsv csv md latex" ;;
    " annotate --format") echo "text json tsv csv md latex" ;;
    " agree") echo "-h --help --resamples --seed --alpha -o --output --answers --exclude --lps --pass-mark -f --format -w --width -q --quiet" ;;
    " agree -f") echo "text json tsv csv md latex" ;;
    " agree --format") echo "text json tsv csv md latex" ;;
    " setup") echo "-h --help -o --output -f --format -w --width -q --quiet install cache completion" ;;
    " setup -f") echo "text json tsv csv md latex" ;;
    " setup --format") echo "text json tsv csv md latex" ;;
    " setup install") echo "-h --help -o --output -f --format -w --width -q --quiet" ;;
    " setup install -f") echo "text json tsv csv md latex" ;;
    " setup install --format") echo "text json tsv csv md latex" ;;
    " setup cache") echo "-h --help -o --output -f --format -w --width -q --quiet clear limit" ;;
    " setup cache -f") echo "text json tsv csv md latex" ;;
    " setup cache --format") echo "text json tsv csv md latex" ;;
    " setup cache clear") echo "-h --help -o --output -f --format -w --width -q --quiet" ;;
    " setup cache clear -f") echo "text json tsv csv md latex" ;;
    " setup cache clear --format") echo "text json tsv csv md latex" ;;
    " setup cache limit") echo "-h --help -o --output -f --format -w --width -q --quiet" ;;
    " setup cache limit -f") echo "text json tsv csv md latex" ;;
    " setup cache limit --format") echo "text json tsv csv md latex" ;;
    " setup completion") echo "-h --help bash zsh fish -o --output -f --format -w --width -q --quiet" ;;
    " setup completion -f") echo "text json tsv csv md latex" ;;
    " setup completion --format") echo "text json tsv csv md latex" ;;
    " train bilstm") echo "-h --help --train --human --dev --held-out --gold --recipe --epochs --patience --batch-size --rate --schedule --weight-decay --comparison-epochs --comparison-rate --items --after --loss --seed --device --gpus --threads --judge-url --concurrency --request-timeout --price --budget --allow-http --use-proxy -m --metrics -o --output --overwrite -f --format -w --width -q --quiet" ;;
    " train bilstm --schedule") echo "constant linear" ;;
    " train bilstm --loss") echo "logistic hinge" ;;
    " train bilstm -f") echo "text json tsv csv md latex" ;;
    " train bilstm --format") echo "text json tsv csv md latex" ;;
    " train bilstm-attention") echo "-h --help --train --human --dev --held-out --gold --recipe --epochs --patience --batch-size --rate --schedule --weight-decay --comparison-epochs --comparison-rate --items --after --loss --seed --device --gpus --threads --judge-url --concurrency --request-timeout --price --budget --allow-http --use-proxy -m --metrics -o --output --overwrite -f --format -w --width -q --quiet" ;;
    " train bilstm-attention --schedule") echo "constant linear" ;;
    " train bilstm-attention --loss") echo "logistic hinge" ;;
    " train bilstm-attention -f") echo "text json tsv csv md latex" ;;
    " train bilstm-attention --format") echo "text json tsv csv md latex" ;;
    " train blend") echo "-h --help --train --human --dev --held-out --gold --recipe --strengths --device --gpus --threads --judge-url --concurrency --request-timeout --price --budget --allow-http --use-proxy -m --metrics -o --output --overwrite -f --format -w --width -q --quiet" ;;
    " train blend -f") echo "text json tsv csv md latex" ;;
    " train blend --format") echo "text json tsv csv md latex" ;;
    " train bleu-r") echo "-h --help --train --human --dev --held-out --gold --recipe --strengths --prior --no-prior --device --gpus --threads --judge-url --concurrency --request-timeout --price --budget --allow-http --use-proxy -m --metrics -o --output --overwrite -f --format -w --width -q --quiet" ;;
    " train bleu-r -f") echo "text json tsv csv md latex" ;;
    " train bleu-r --format") echo "text json tsv csv md latex" ;;
    " train esim") echo "-h --help --train --human --dev --held-out --gold --recipe --epochs --patience --batch-size --rate --schedule --weight-decay --comparison-epochs --comparison-rate --items --after --loss --seed --device --gpus --threads --judge-url --concurrency --request-timeout --price --budget --allow-http --use-proxy -m --metrics -o --output --overwrite -f --format -w --width -q --quiet" ;;
    " train esim --schedule") echo "constant linear" ;;
    " train esim --loss") echo "logistic hinge" ;;
    " train esim -f") echo "text json tsv csv md latex" ;;
    " train esim --format") echo "text json tsv csv md latex" ;;
    " train meteor-r") echo "-h --help --train --human --dev --held-out --gold --recipe --strengths --prior --no-prior --device --gpus --threads --judge-url --concurrency --request-timeout --price --budget --allow-http --use-proxy -m --metrics -o --output --overwrite -f --format -w --width -q --quiet" ;;
    " train meteor-r -f") echo "text json tsv csv md latex" ;;
    " train meteor-r --format") echo "text json tsv csv md latex" ;;
    " train mt-r") echo "-h --help --train --human --dev --held-out --gold --recipe --strengths --prior --no-prior --device --gpus --threads --judge-url --concurrency --request-timeout --price --budget --allow-http --use-proxy -m --metrics -o --output --overwrite -f --format -w --width -q --quiet" ;;
    " train mt-r -f") echo "text json tsv csv md latex" ;;
    " train mt-r --format") echo "text json tsv csv md latex" ;;
    " train mt-rte-r") echo "-h --help --train --human --dev --held-out --gold --recipe --strengths --prior --no-prior --device --gpus --threads --judge-url --concurrency --request-timeout --price --budget --allow-http --use-proxy -m --metrics -o --output --overwrite -f --format -w --width -q --quiet" ;;
    " train mt-rte-r -f") echo "text json tsv csv md latex" ;;
    " train mt-rte-r --format") echo "text json tsv csv md latex" ;;
    " train nist-r") echo "-h --help --train --human --dev --held-out --gold --recipe --strengths --prior --no-prior --device --gpus --threads --judge-url --concurrency --request-timeout --price --budget --allow-http --use-proxy -m --metrics -o --output --overwrite -f --format -w --width -q --quiet" ;;
    " train nist-r -f") echo "text json tsv csv md latex" ;;
    " train nist-r --format") echo "text json tsv csv md latex" ;;
    " train pairwise") echo "-h --help --train --human --dev --held-out --gold --recipe --rate --kendall-rate --batch-size --decay --epochs --patience --order --choose-on --seed --device --gpus --threads --judge-url --concurrency --request-timeout --price --budget --allow-http --use-proxy -m --metrics -o --output --overwrite -f --format -w --width -q --quiet" ;;
    " train pairwise --order") echo "given random" ;;
    " train pairwise -f") echo "text json tsv csv md latex" ;;
    " train pairwise --format") echo "text json tsv csv md latex" ;;
    " train rte-r") echo "-h --help --train --human --dev --held-out --gold --recipe --strengths --prior --no-prior --device --gpus --threads --judge-url --concurrency --request-timeout --price --budget --allow-http --use-proxy -m --metrics -o --output --overwrite -f --format -w --width -q --quiet" ;;
    " train rte-r -f") echo "text json tsv csv md latex" ;;
    " train rte-r --format") echo "text json tsv csv md latex" ;;
    " train svr") echo "-h --help --train --human --dev --held-out --gold --recipe --folds --c --epsilon --gamma --seed --device --gpus --threads --judge-url --concurrency --request-timeout --price --budget --allow-http --use-proxy -m --metrics -o --output --overwrite -f --format -w --width -q --quiet" ;;
    " train svr -f") echo "text json tsv csv md latex" ;;
    " train svr --format") echo "text json tsv csv md latex" ;;
    " train ter-r") echo "-h --help --train --human --dev --held-out --gold --recipe --strengths --prior --no-prior --device --gpus --threads --judge-url --concurrency --request-timeout --price --budget --allow-http --use-proxy -m --metrics -o --output --overwrite -f --format -w --width -q --quiet" ;;
    " train ter-r -f") echo "text json tsv csv md latex" ;;
    " train ter-r --format") echo "text json tsv csv md latex" ;;
    " train tertium-multi-adapted") echo "-h --help --train --human --dev --held-out --gold --recipe --adapt --strengths --device --gpus --threads --judge-url --concurrency --request-timeout --price --budget --allow-http --use-proxy -m --metrics -o --output --overwrite -f --format -w --width -q --quiet" ;;
    " train tertium-multi-adapted --adapt") echo "head scale" ;;
    " train tertium-multi-adapted -f") echo "text json tsv csv md latex" ;;
    " train tertium-multi-adapted --format") echo "text json tsv csv md latex" ;;
    *) return 1 ;;
  esac
}

_tertium() {
  local word=${COMP_WORDS[COMP_CWORD]} last=${COMP_WORDS[COMP_CWORD-1]} command= choices n
  for ((n = 1; n < COMP_CWORD; n++)); do
    if [[ ${COMP_WORDS[n]} != -* ]] && _tertium_words "$command ${COMP_WORDS[n]}" > /dev/null; then
      command="$command ${COMP_WORDS[n]}"
    fi
  done
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$(_tertium_words "$command")" -- "$word"))
  elif [[ $last == -* ]]; then
    choices=$(_tertium_words "$command $last") && COMPREPLY=($(compgen -W "$choices" -- "$word"))
  else
    COMPREPLY=($(compgen -W "$(_tertium_words "$command")" -X '-*' -- "$word"))
  fi
}

if [[ -n $ZSH_VERSION ]]; then
  type compdef > /dev/null 2>&1 || { autoload -U compinit && compinit; }
  autoload -U bashcompinit && bashcompinit
fi
complete -o default -F _tertium tertium
