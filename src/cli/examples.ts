import type { Command } from "commander";

/** Examples for each command: shell lines, all of which a test parses. */
const EXAMPLES: Readonly<Record<string, readonly string[]>> = {
  serve: ["roost serve", "roost serve --data ./data --host 0.0.0.0 --port 8080"],
  config: ["roost config", "roost config --data ./data --json"],
  doctor: ["roost doctor", "roost doctor --data ./data --json"],
  "invite create": ["roost invite create", "roost invite create --uses 10 --credit 5.00 --expires 30d"],
  "invite list": ["roost invite list"],
  "invite revoke": ["roost invite revoke invite_0123456789abcdef0123456789abcdef"],
  "account list": ["roost account list"],
  "account show": ["roost account show ada@example.org"],
  "account credit": ["roost account credit ada@example.org 5.00 --note 'paid by bank transfer'"],
  "account credit-transfer": ["roost account credit-transfer ada@example.org base 0x1f… --note mistyped"],
  "account debit": ["roost account debit ada@example.org 495.00 --note '500.00 instead of 5.00'"],
  "account limit": [
    "roost account limit ada@example.org",
    "roost account limit ada@example.org --agents 5000 --writes default",
    "roost account limit ada@example.org --tokens-per-month 5000000",
    "roost account limit ada@example.org --tokens-per-day none",
  ],
  "account suspend": ["roost account suspend ada@example.org"],
  "account resume": ["roost account resume ada@example.org"],
  outbox: ["roost outbox"],
  audit: ["roost audit", "roost audit --verify"],
  "wallet show": ["roost wallet show"],
  "wallet give-up": ["roost wallet give-up"],
  "wallet export": ["roost wallet export"],
  "backup create": [
    "roost backup create roost.tar.zst",
    "roost backup create s3://bucket/roost.tar.zst.age --passphrase-file pass.txt",
  ],
  "backup verify": ["roost backup verify roost.tar.zst"],
  "backup restore": ["roost backup restore roost.tar.zst --data ./restored"],
  "backup list": ["roost backup list", "roost backup list --json | jq -r '.[0].file'"],
  rollback: ["roost rollback --data ./data"],
  "models list": ["roost models list", "roost models list --json | jq '.added[].name'"],
  "models pull": [
    "roost models pull onnx-community/Qwen2.5-0.5B-Instruct",
    "roost models pull onnx-community/Qwen3-0.6B-ONNX --dtype int8 --name qwen3",
  ],
  "models import": ["roost models import ./Qwen2.5-0.5B-Instruct --name qwen"],
  "models remove": ["roost models remove qwen", "roost models remove qwen --force"],
  "login-link": ["roost login-link ada@example.org"],
  login: ["roost login", "roost login --url https://roost.example.org --profile work", "roost login --key - < key.txt"],
  logout: ["roost logout", "roost logout --profile work"],
  whoami: ["roost whoami", "roost whoami --profile work"],
  status: ["roost status", "roost status --url https://roost.example.org --json"],
  open: ["roost open", "roost open --print"],
  "profile list": ["roost profile list"],
  "profile use": ["roost profile use work"],
  "instance list": ["roost instance list", "roost instance list --status running --json"],
  "instance create": ["roost instance create home"],
  "instance start": ["roost instance start home"],
  "instance stop": ["roost instance stop home"],
  "instance delete": ["roost instance delete home", "roost instance delete home --yes"],
  "agent list": ["roost agent list home"],
  "agent show": [
    "roost agent show home librarian",
    "roost agent show home librarian --json | jq -r '.files[\"SOUL.md\"]'",
  ],
  "agent create": [
    "roost agent create home librarian",
    "roost agent create home 'Ada L' --slug ada --file SOUL.md=./soul.md",
  ],
  "agent edit": [
    "roost agent edit home librarian --file SOUL.md=./soul.md",
    "roost agent edit home librarian --model openai:gpt-4o,openai:gpt-4o-mini",
    "roost agent edit home librarian --tool write_file=ask --tool delete_file=deny",
    "roost agent edit home librarian --heartbeat 30m --active-hours 08:00-20:00",
    "roost agent edit home librarian --heartbeat off",
  ],
  "agent export": [
    "roost agent export home librarian",
    "roost agent export home librarian --history --output - | age -p > ada.age",
  ],
  "agent import": [
    "roost agent import home librarian.tar.gz",
    "roost agent import home librarian.tar.gz --name 'Librarian 2'",
    "roost agent import home ~/.openclaw/workspace",
  ],
  "agent delete": ["roost agent delete home librarian"],
  "conversation list": ["roost conversation list home librarian"],
  "conversation new": ["roost conversation new home librarian --title Trips"],
  "conversation rename": ["roost conversation rename home librarian Trips --title Holidays"],
  "conversation fork": [
    "roost conversation fork home librarian default",
    "roost conversation fork home librarian Trips --message msg_0123…",
  ],
  context: ["roost context home librarian", "roost context home librarian --conversation Trips"],
  "conversation delete": ["roost conversation delete home librarian Trips"],
  chat: [
    "roost chat home librarian",
    "roost chat home librarian --conversation Trips",
    "printf 'Hello\\nAnd goodbye\\n' | roost chat home librarian",
  ],
  send: [
    "roost send home librarian 'What should I read on a train?'",
    "roost send home librarian - < letter.md",
    "roost send home librarian 'Where next?' --conversation Trips",
    "roost send home librarian 'Hello' --json | jq -r .message",
  ],
  events: ["roost events home librarian", "roost events home librarian --after 0 --json"],
  "approval list": ["roost approval list", "roost approval list --status denied --json"],
  "approval show": ["roost approval show appr_0123…"],
  "approval approve": ["roost approval approve appr_0123…", "roost approval approve appr_0123… --remember --yes"],
  "approval deny": ["roost approval deny appr_0123… --note 'not before Monday'"],
  "approval answer": ["roost approval answer appr_0123… Friday 'two or three'"],
  "memory search": ["roost memory search home librarian 'Which books did I like?'"],
  "memory forget": [
    "roost memory forget home librarian --run run_0123… --dry-run",
    "roost memory forget home librarian --conversation 'Holiday plans' --yes",
  ],
  "memory rebuild": ["roost memory rebuild --data ./data"],
  "schedule list": ["roost schedule list home librarian"],
  "schedule show": ["roost schedule show home librarian Morning"],
  "schedule create": [
    "roost schedule create home librarian Morning 'A poem?' --cron '0 8 * * *'",
    "roost schedule create home librarian Check 'Anything new?' --every 30m",
  ],
  "schedule on": ["roost schedule on home librarian Morning"],
  "schedule off": ["roost schedule off home librarian Morning"],
  "schedule run": ["roost schedule run home librarian Morning"],
  "schedule delete": ["roost schedule delete home librarian Morning --yes"],
  "mcp list": ["roost mcp list home", "roost mcp list home docs"],
  "mcp add": [
    "roost mcp add home docs https://mcp.example.com/mcp",
    "roost mcp add home x https://x.example --header 'X-Key: {{secret:X_KEY}}'",
  ],
  "mcp refresh": ["roost mcp refresh home docs"],
  "mcp authorize": ["roost mcp authorize home docs", "roost mcp authorize home docs --print"],
  "mcp approve": ["roost mcp approve home docs", "roost mcp approve home docs search --yes"],
  "mcp remove": ["roost mcp remove home docs --yes"],
  "skill list": ["roost skill list", "roost skill list home"],
  "skill show": ["roost skill show meeting-notes"],
  "skill install": [
    "roost skill install home meeting-notes",
    "roost skill install home my-own --from ./my-own",
    "roost skill install home my-own --from librarian.tar.gz",
  ],
  "skill remove": ["roost skill remove home meeting-notes"],
  "secret set": ["roost secret set home WEATHER_TOKEN", "roost secret set home WEATHER_TOKEN < token.txt"],
  "secret list": ["roost secret list home"],
  "secret delete": ["roost secret delete home WEATHER_TOKEN"],
  billing: ["roost billing", "roost billing --json | jq .balance"],
  usage: ["roost usage", "roost usage --by model --days 30", "roost usage --json | jq '.days[0]'"],
  completion: ["roost completion fish | source"],
};

/** A command's examples; for a group, the first example of each of its commands. */
export function examplesOf(command: Command, words: readonly string[]): readonly string[] {
  if (words.length === 0) return ["roost serve", "roost login", "roost chat home librarian"];
  const own = EXAMPLES[words.join(" ")];
  return own ?? command.commands.flatMap((child) => examplesOf(child, [...words, child.name()]).slice(0, 1));
}

/** Shows examples below every command's help. */
export function addExamples(program: Command): void {
  program.addHelpText("afterAll", ({ command }) => {
    const examples = examplesOf(command, wordsOf(command));
    return examples.length === 0 ? "" : ["", "Examples:", ...examples.map((line) => `  ${line}`)].join("\n");
  });
}

/** What is typed after `roost` to run a command. */
const wordsOf = (command: Command): string[] =>
  command.parent === null ? [] : [...wordsOf(command.parent), command.name()];
