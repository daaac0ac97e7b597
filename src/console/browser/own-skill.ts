import { describeHidden, findHidden } from "../../lib/hidden-characters.ts";
import { decodeUtf8 } from "../../lib/utf8.ts";
import { make, makeButton, part, reportErrors } from "./dom.ts";
import { ToldError } from "./told-error.ts";
import { visible, visibleFile } from "./visible-text.ts";

const fold = part("own-skill", HTMLDetailsElement);
const folder = part("skill-folder", HTMLInputElement);
const single = part("skill-files", HTMLInputElement);
const preview = part("own-preview", HTMLElement);

/** What the host accepts (docs/contract/api.md, Sizes): more is not even read. */
const MAX_FILES = 64;
const MAX_BYTES = 1024 * 1024;

type Files = Record<string, string>;

/** Lets somebody choose the files of a skill, shows all of them as they are, and calls `install` if that is wanted. */
export function chooseOwnSkill(install: (files: Files) => Promise<void>): void {
  let chosen = 0;
  async function show(input: HTMLInputElement): Promise<void> {
    const mine = ++chosen;
    preview.hidden = true;
    (input === folder ? single : folder).value = "";
    const files = await readFiles([...(input.files ?? [])], input === folder);
    if (mine !== chosen) return;
    preview.replaceChildren(...previewOf(files, install));
    preview.hidden = false;
    preview.focus();
  }
  for (const input of [folder, single]) {
    // Choosing the same files again reads them again.
    input.addEventListener("click", () => {
      input.value = "";
    });
    input.addEventListener("change", () => void reportErrors(input, () => show(input)));
  }
  fold.addEventListener("toggle", () => {
    if (fold.open) return;
    chosen++;
    folder.value = "";
    single.value = "";
    preview.replaceChildren();
    preview.hidden = true;
  });
}

/** By their names in the folder. Throws `ToldError` for what the host would not accept. */
async function readFiles(given: readonly File[], inFolder: boolean): Promise<Files> {
  const named = given
    .map((file) => ({ file, name: inFolder ? file.webkitRelativePath.split("/").slice(1).join("/") : file.name }))
    // Of editors and version control; the host takes none.
    .filter(({ name }) => !/(^|\/)\./.test(name));
  if (!named.some(({ name }) => name === "SKILL.md")) {
    throw new ToldError(
      "There is no SKILL.md among these files",
      "Choose the folder that it is in, or the file itself.",
    );
  }
  const bytes = named.reduce((sum, { file }) => sum + file.size, 0);
  if (named.length > MAX_FILES || bytes > MAX_BYTES) {
    throw new ToldError(
      `These are ${named.length} files of ${sizeOf(bytes)}`,
      `A skill has at most ${MAX_FILES} files of ${sizeOf(MAX_BYTES)} together. Leave out what it does not need.`,
    );
  }
  const texts = await Promise.all(named.map(async ({ file, name }) => [name, await textOf(file, name)] as const));
  return Object.fromEntries(texts.sort(([one], [other]) => rank(one) - rank(other) || (one < other ? -1 : 1)));
}

const rank = (name: string): number => (name === "SKILL.md" ? 0 : 1);

async function textOf(file: File, name: string): Promise<string> {
  // A byte order mark is part of what is pinned.
  const text = decodeUtf8(await file.arrayBuffer());
  if (text !== null) return text;
  throw new ToldError(`${name} is not text in UTF-8`, "Leave it out, or save it as text. Then choose the files again.");
}

/** Rounded up, so that what is too large never looks as if it fitted. */
function sizeOf(bytes: number): string {
  if (bytes < 1024) return `${bytes} bytes`;
  const kilobytes = Math.ceil(bytes / 1024);
  return kilobytes < 1024 ? `${kilobytes} KiB` : `${Math.ceil(kilobytes / 102.4) / 10} MiB`;
}

function previewOf(files: Files, install: (files: Files) => Promise<void>): HTMLElement[] {
  const entries = Object.entries(files);
  const faults = entries.flatMap(([name, text]) => {
    const hidden = findHidden(text) ?? findHidden(name);
    return hidden ? [make("p", "warning", ...visible(name), `: ${describeHidden(hidden)}.`)] : [];
  });
  const shown = entries.map(([name, text]) => {
    const size = sizeOf(new TextEncoder().encode(text).length);
    const kind = name.endsWith(".js") ? "a script, " : "";
    const details = make("details", "", make("summary", "", make("code", "", ...visible(name)), ` ${kind}${size}`));
    details.append(visibleFile(text));
    details.open = name === "SKILL.md";
    return details;
  });
  const next =
    faults.length > 0
      ? make(
          "p",
          "",
          "It hides text from its readers, and no host takes that. Correct it, then choose the files again.",
        )
      : makeButton("Install these files", "", () => install(files));
  return [make("h4", "", "What you have chosen"), ...shown, ...faults, next];
}
