# Completes the commands, options and values of tertium in bash and zsh.

_tertium_words() {
  case "$1" in
CASES
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
