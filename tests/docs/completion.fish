# Completes the commands, options and values of tertium in fish.

function _tertium_words
  switch "$argv[1]"
CASES
    case '*'
      return 1
  end
end

function _tertium
  set -l command ''
  set -l words (commandline -opc)
  for word in $words
    if not string match -q -- '-*' $word; and _tertium_words "$command $word" > /dev/null
      set command "$command $word"
    end
  end
  if string match -q -- '-*' (commandline -ct)
    _tertium_words "$command" | string split ' '
  else if string match -q -- '-*' $words[-1]
    _tertium_words "$command $words[-1]" | string split ' '
  else
    _tertium_words "$command" | string split ' ' | string match -v -- '-*'
  end
end

complete -c tertium -a '(_tertium)'
