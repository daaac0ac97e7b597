/** Writes docs/settings.md from the settings as the code describes them. A test holds that it is current. */
import { join } from "node:path";
import { keyOf, type Setting } from "../src/config/forms.ts";
import { GROUPS } from "../src/config/settings.ts";
import { allSettings } from "../src/config.ts";

export const SETTINGS_PAGE = join(import.meta.dir, "../docs/settings.md");

const INTRODUCTION = `<!-- Made by \`npm run docs\` from src/config/settings.ts: change it there. -->

# Settings

Each is a variable of the environment, or the same in lower case without \`ROOST_\` in \`roost.toml\` in the data folder:

\`\`\`toml
port = 8080
public_url = "https://roost.example"
\`\`\`

The command line (\`--data\`, \`--host\`, \`--port\`) wins over the environment, the environment over the file. A name that is
no setting and a value that cannot be used stop the start, with exit code 78 and a line for each. \`roost config\` shows
every setting's value and where it came from; secrets are masked there.`;

export function settingsPage(): string {
  const groups = GROUPS.map(([title, settings]) =>
    [`## ${title}`, "", row("Setting", "Value", "Default", "Meaning"), row("---", "---", "---", "---")]
      .concat(allSettings(settings).map(describe))
      .join("\n"),
  );
  return `${[INTRODUCTION, ...groups].join("\n\n")}\n`;
}

function describe({ name, expects, fallback, fallbackShown, meaning, secret, notInFile }: Setting<unknown>): string {
  const remarks = [...(secret ? ["a secret"] : []), ...(notInFile ? ["not in the file"] : [])];
  const key = notInFile ? "" : `<br>\`${keyOf(name)}\``;
  const whole = [meaning, ...remarks].join("; ");
  return row(`\`${name}\`${key}`, expects, fallbackShown ?? `\`${fallback.replaceAll(",", ", ")}\``, whole);
}

const row = (...cells: string[]): string =>
  `| ${cells.map((cell) => cell.replaceAll("|", "\\|").replaceAll("<n", "&lt;n")).join(" | ")} |`;

if (import.meta.main) await Bun.write(SETTINGS_PAGE, settingsPage());
