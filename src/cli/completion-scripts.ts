import { sayText } from "./output.ts";

/** `roost completion bash|zsh|fish`: a script that asks `roost __complete` for completions at the cursor. */
export const printScript = (shell: keyof typeof SCRIPTS): void => sayText(SCRIPTS[shell]);

const SCRIPTS = {
  bash: `_roost() {
  local line kind=""
  COMPREPLY=()
  while IFS= read -r line; do
    if [[ -z $kind ]]; then kind=$line; else COMPREPLY+=("$line"); fi
  done < <("\${COMP_WORDS[0]/#\\~/$HOME}" __complete bash -- "$COMP_WORDBREAKS" "\${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
  if [[ $kind == files ]]; then compopt -o default 2>/dev/null; fi
}
complete -F _roost roost`,

  zsh: `#compdef roost
_roost() {
  local -a lines
  lines=("\${(@f)$("\${\${(Q)words[1]}/#\\~/$HOME}" __complete zsh -- "\${(@Q)words[2,CURRENT-1]}" "\${(Q)PREFIX}" 2>/dev/null)}")
  if [[ $lines[1] == files ]]; then _files; return; fi
  shift lines
  (( $#lines )) && _describe roost lines
}
if [ "$funcstack[1]" = "_roost" ]; then _roost "$@"; else compdef _roost roost; fi`,

  fish: `function __roost_complete
  set -l words (commandline -opc)
  set -l lines ($words[1] __complete fish -- $words[2..] (commandline -ct) 2>/dev/null)
  if test "$lines[1]" = files
    __fish_complete_path (commandline -ct)
  else
    string join -- \\n $lines[2..]
  end
end
complete -c roost -f -a '(__roost_complete)'`,
} as const;
