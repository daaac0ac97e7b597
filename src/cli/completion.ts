import type { Command, Option } from "commander";
import { WrongUsage } from "./failure.ts";
import { sayText } from "./output.ts";

/** A place in the tree of commands: the words that lead there, and what may follow. */
interface Place {
  /** `invite create`; empty for the program itself. */
  words: string;
  commands: { name: string; description: string }[];
  options: { names: string[]; description: string; takesValue: boolean }[];
}

/** `roost completion bash|zsh|fish`: the whole tree as a static script, so that completing starts no process. */
export function printCompletion(shell: string, program: Command): void {
  const write = { bash, zsh, fish }[shell];
  if (!write) throw new WrongUsage(`there is no completion for "${shell}"`, "expected bash, zsh or fish");
  sayText(write(placesOf(program, [])));
}

function placesOf(command: Command, words: string[]): Place[] {
  const help = command.createHelp();
  const children = help.visibleCommands(command);
  const place: Place = {
    words: words.join(" "),
    commands: children.map((child) => ({ name: child.name(), description: child.description() })),
    options: help.visibleOptions(command).map((option: Option) => ({
      names: [option.short, option.long].filter((name) => name !== undefined && name !== null),
      description: option.description,
      takesValue: option.required || option.optional,
    })),
  };
  const below = command.commands.flatMap((child) => placesOf(child, [...words, child.name()]));
  return [place, ...below];
}

const optionNames = (place: Place): string[] => place.options.flatMap(({ names }) => names);
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
/** A shell pattern that any of the places' words match. */
const anyOf = (places: Place[]): string =>
  places.flatMap(({ words }) => (words === "" ? [] : [`"${words}"`])).join("|");

/** Goes through the words before the cursor; the file names of the shell complete what has no list. */
function bash(places: Place[]): string {
  const cases = places.map(
    (place) =>
      `    "${place.words}") commands="${place.commands.map(({ name }) => name).join(" ")}" options="${optionNames(place).join(" ")}" ;;`,
  );
  return `_roost() {
  local at="" word commands="" options="" current="\${COMP_WORDS[COMP_CWORD]}"
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "\${at:+$at }$word" in
      ${anyOf(places)}) at="\${at:+$at }$word" ;;
    esac
  done
  case "$at" in
${cases.join("\n")}
  esac
  if [[ $current == -* ]]; then commands="$options"; fi
  COMPREPLY=($(compgen -W "$commands" -- "$current"))
}
complete -o default -F _roost roost`;
}

function zsh(places: Place[]): string {
  const described = (name: string, description: string) =>
    quoted(`${name.replaceAll(":", "\\:")}:${description.replaceAll(":", "\\:")}`);
  const cases = places.map((place) => {
    const commands = place.commands.map(({ name, description }) => described(name, description));
    const options = place.options.flatMap(({ names, description }) =>
      names.map((name) => described(name, description)),
    );
    return `    "${place.words}") commands=(${commands.join(" ")}) options=(${options.join(" ")}) ;;`;
  });
  return `#compdef roost
_roost() {
  local at="" word
  local -a commands options
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "\${at:+$at }$word" in
      ${anyOf(places)}) at="\${at:+$at }$word" ;;
    esac
  done
  case "$at" in
${cases.join("\n")}
  esac
  if [[ $PREFIX == -* ]]; then _describe -o option options
  elif (( $#commands )); then _describe command commands
  else _files
  fi
}
if [ "$funcstack[1]" = "_roost" ]; then _roost "$@"; else compdef _roost roost; fi`;
}

function fish(places: Place[]): string {
  const lines = places.flatMap((place) => {
    const here = `complete -c roost -n '__roost_at "${place.words}"'`;
    const commands = place.commands.map(
      ({ name, description }) => `${here} -f -a ${quoted(name)} -d ${quoted(description)}`,
    );
    const options = place.options.map(({ names, description, takesValue }) => {
      const flags = names.map((name) => (name.startsWith("--") ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`));
      return `${here} ${flags.join(" ")}${takesValue ? " -r" : ""} -d ${quoted(description)}`;
    });
    return [...commands, ...options];
  });
  const words = places.flatMap((place) => (place.words === "" ? [] : [quoted(place.words)]));
  return `function __roost_at
  set -l at ""
  for word in (commandline -opc)[2..]
    set -l next (string trim -- "$at $word")
    contains -- $next ${words.join(" ")}; and set at $next
  end
  test "$at" = "$argv[1]"
end
${lines.join("\n")}`;
}
