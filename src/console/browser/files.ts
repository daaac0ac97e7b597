import type { AgentIds } from "../../../clients/typescript/src/index.ts";
import { askBeforeLeaving, type Records, roost } from "./api.ts";
import { ago, attempt, figure, make, part, reportErrors } from "./dom.ts";
import { type Draft, makeFileEditor } from "./file-editor.ts";
import { lines, writeFile } from "./file-text.ts";
import { nameInWorkspace, upload } from "./file-upload.ts";
import { AGENT } from "./records.ts";
import { ToldError } from "./told-error.ts";

type File = Records["File"];

const PAGE = 100;
const SOUL = "SOUL.md";
/** What the files of a new agent are for (docs/contract/runtime.md, Workspace files). */
const MEANINGS: Record<string, string> = {
  "AGENTS.md": "how it works",
  "SOUL.md": "its character",
  "IDENTITY.md": "what it is",
  "USER.md": "whom it serves",
  "TOOLS.md": "notes on tools",
  "BOOTSTRAP.md": "its first conversation",
  "MEMORY.md": "what it remembers permanently",
  "HEARTBEAT.md": "its recurring duties",
};

const list = part("file-list", HTMLUListElement);
const more = part("more-files", HTMLButtonElement);
const told = part("files-told", HTMLElement);
const form = part("new-file-form", HTMLFormElement);
const name = part("new-file-name", HTMLInputElement);
const chosen = part("upload-files", HTMLInputElement);

/** Arms the list of an agent's files. Returns what reads and shows it. */
export function openFiles(): (agent: AgentIds, isStillWanted: () => boolean) => Promise<void> {
  let of: AgentIds | undefined;
  let cursor: string | null = null;
  const rows = new Map<string, HTMLLIElement>();
  /** What is not saved, by agent and file: it stays while something else is looked at. */
  const drafts = new Map<string, Draft>();
  askBeforeLeaving(() => drafts.size > 0);

  async function readPage(ids: AgentIds, isStillWanted: () => boolean): Promise<void> {
    const query = { limit: PAGE, after: cursor ?? undefined };
    const page = await roost.get(`${AGENT}/files`, { path: ids, query });
    if (!isStillWanted()) return;
    cursor = page.nextCursor;
    more.hidden = cursor === null;
    for (const file of page.data) add(ids, file.name, factsOf(file));
  }

  /** A file that was deleted meanwhile is not listed, but what is written there can be made a file again, or dropped. */
  function addDrafts(ids: AgentIds): void {
    for (const key of drafts.keys()) {
      const [agentId, ...words] = key.split(" ");
      if (agentId === ids.agentId) add(ids, words.join(" "));
    }
  }

  /** In the order of the API, which is that of the names' characters. */
  function add(ids: AgentIds, file: string, facts?: string): HTMLLIElement {
    const known = rows.get(file);
    if (known) return known;
    const row = rowOf(ids, file, facts);
    const next = [...rows.keys()].filter((other) => other > file).sort()[0];
    list.insertBefore(row, rows.get(next ?? "") ?? null);
    rows.set(file, row);
    return row;
  }

  function rowOf(ids: AgentIds, file: string, facts?: string): HTMLLIElement {
    const key = `${ids.agentId} ${file}`;
    const about = make("span", "soft");
    const summary = make("summary", "", make("code", "", file), about);
    const fold = make("details", "", summary);
    const item = make("li", "", fold);
    const tell = () => {
      const all = [MEANINGS[file], facts, drafts.has(key) ? "not saved" : undefined];
      about.textContent = all.filter((fact) => fact !== undefined).join(" · ");
    };
    tell();
    fold.addEventListener("toggle", () => {
      const editor = fold.querySelector("section");
      if (!fold.open) {
        // What was only read is read again when it is opened again.
        if (!drafts.has(key)) editor?.remove();
      } else if (!editor) fold.append(editorOf());
    });
    const editorOf = () =>
      makeFileEditor({
        at: { ...ids, file },
        draft: drafts.get(key),
        keep(draft) {
          if (draft) drafts.set(key, draft);
          else drafts.delete(key);
          tell();
        },
        saved(text) {
          facts = `${bytes(new TextEncoder().encode(text).length)} · just now`;
          tell();
        },
        deleted() {
          drafts.delete(key);
          item.remove();
          rows.delete(file);
          told.textContent = `${file} is deleted.`;
          told.focus();
        },
      });
    return item;
  }

  part("open-soul", HTMLButtonElement).addEventListener("click", () => {
    if (open(rows.get(SOUL))) return;
    // It was deleted: the form below makes it again.
    part("new-file", HTMLDetailsElement).open = true;
    name.value = SOUL;
    name.focus();
  });
  more.addEventListener("click", () => {
    const ids = of;
    if (ids) void attempt(more, () => readPage(ids, () => ids === of));
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const ids = of;
    if (!ids) return;
    void attempt(form, async () => {
      const file = name.value.trim();
      const made = await writeFile({ ...ids, file }, "", { text: "", etag: null });
      if (made === null)
        throw new ToldError("there is a file of this name already", "Open it above, or choose another.");
      if (ids !== of) return;
      form.reset();
      part("new-file", HTMLDetailsElement).open = false;
      open(add(ids, file, factsOf({ size: 0, updatedAt: new Date().toISOString() })));
    });
  });

  // Choosing the same files again takes them again.
  chosen.addEventListener("click", () => {
    chosen.value = "";
  });
  chosen.addEventListener("change", () => void reportErrors(chosen, take));

  async function take(): Promise<void> {
    const ids = of;
    const files = [...(chosen.files ?? [])];
    if (!ids || files.length === 0) return;
    const written = files.map(nameInWorkspace).find((file) => drafts.has(`${ids.agentId} ${file}`));
    if (written !== undefined) {
      throw new ToldError(
        `${written} has changes that are not saved`,
        "Save or drop them above, then choose it again.",
      );
    }
    told.textContent = "";
    let count = 0;
    const clashes = await upload(ids, files, (file, size) => {
      count++;
      if (ids === of) add(ids, file, factsOf({ size, updatedAt: new Date().toISOString() }));
    });
    if (ids !== of) return;
    for (const { file, text, of: there } of clashes) {
      drafts.set(`${ids.agentId} ${file}`, { text: lines(text), of: there, isOther: true });
      rows.get(file)?.remove();
      rows.delete(file);
      open(add(ids, file));
    }
    const same = files.length - count - clashes.length;
    const facts = [
      count > 0 || same === 0 ? `${figure(count)} ${count === 1 ? "file was" : "files were"} added.` : "",
      same > 0 ? `${figure(same)} ${same === 1 ? "was" : "were"} there already, with the same text.` : "",
      clashes.length > 0 ? `There already, with another text: ${clashes.map(({ file }) => file).join(", ")}.` : "",
    ];
    told.textContent = facts.filter((fact) => fact !== "").join(" ");
    // A file that was there asks what is to become of it.
    if (clashes.length === 0) told.focus();
  }

  return async (agent, isStillWanted) => {
    of = agent;
    cursor = null;
    rows.clear();
    list.replaceChildren();
    more.hidden = true;
    told.textContent = "";
    const isOpen = () => agent === of && isStillWanted();
    await readPage(agent, isOpen);
    if (isOpen()) addDrafts(agent);
  };
}

/** Opens a file's row, for a person who goes on there; false if there is none. */
function open(row: HTMLLIElement | undefined): boolean {
  const fold = row?.querySelector("details");
  const summary = fold?.querySelector("summary");
  if (!row || !fold || !summary) return false;
  fold.open = true;
  summary.focus({ preventScroll: true });
  row.scrollIntoView(); // the text below it too, which is not there yet
  return true;
}

const factsOf = ({ size, updatedAt }: Omit<File, "name">): string => `${bytes(size)} · ${ago(updatedAt)}`;

const bytes = (count: number): string => (count < 1024 ? `${count} bytes` : `${figure(Math.round(count / 1024))} KiB`);
